package session

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leat-io/leat/internal/pgerr"
	"github.com/leat-io/leat/internal/pgtype"
	"github.com/leat-io/leat/internal/sql/ast"
	"github.com/leat-io/leat/internal/sql/bind"
)

// settings are a session's parameters, by their names in lower case.
type settings struct {
	user     string
	database string
	values   map[string]string
	before   map[string]string // what SET LOCAL has covered, to be restored at the transaction's end
	zone     *time.Location
	timeout  time.Duration
}

// defaults are the parameters that clients ask for, as a PostgreSQL server answers.
var defaults = map[string]string{
	"server_version":                      "15.0 (leat)",
	"server_version_num":                  "150000",
	"server_encoding":                     "UTF8",
	"client_encoding":                     "UTF8",
	"datestyle":                           "ISO, MDY",
	"intervalstyle":                       "postgres",
	"integer_datetimes":                   "on",
	"standard_conforming_strings":         "on",
	"timezone":                            "UTC",
	"application_name":                    "",
	"search_path":                         "\"$user\", public",
	"transaction_isolation":               "read committed",
	"default_transaction_isolation":       "read committed",
	"transaction_read_only":               "off",
	"default_transaction_read_only":       "off",
	"is_superuser":                        "on",
	"session_authorization":               "leat",
	"statement_timeout":                   "0",
	"lock_timeout":                        "0",
	"idle_in_transaction_session_timeout": "0",
	"extra_float_digits":                  "1",
	"bytea_output":                        "hex",
	"client_min_messages":                 "notice",
	"max_identifier_length":               "63",
	"synchronous_commit":                  "on",
	"lc_collate":                          "C",
	"lc_ctype":                            "C",
	"row_security":                        "on",
	"in_hot_standby":                      "off",
	"max_index_keys":                      "32",
	"block_size":                          "8192",
	"wal_level":                           "logical",
}

// fixed cannot be set.
var fixed = map[string]bool{
	"server_version": true, "server_version_num": true, "server_encoding": true, "integer_datetimes": true, "is_superuser": true,
	"max_identifier_length": true, "lc_collate": true, "lc_ctype": true, "max_index_keys": true, "block_size": true, "wal_level": true,
	"in_hot_standby": true,
}

// reported are told to the client whenever they change (PostgreSQL's GUC_REPORT).
var reported = []string{
	"server_version", "server_encoding", "client_encoding", "application_name", "default_transaction_read_only", "in_hot_standby", "is_superuser",
	"session_authorization", "datestyle", "intervalstyle", "timezone", "integer_datetimes", "standard_conforming_strings",
}

// reportedNames are the names in the spelling that clients expect.
var reportedNames = map[string]string{"datestyle": "DateStyle", "intervalstyle": "IntervalStyle", "timezone": "TimeZone"}

func (s *settings) init(user, database string) {
	s.user, s.database = user, database
	s.values = map[string]string{"session_authorization": user}
	s.zone = time.UTC
}

func (s *settings) get(name string) (string, bool) {
	if v, ok := s.values[name]; ok {
		return v, true
	}
	v, ok := defaults[name]
	return v, ok
}

// Reported calls fn for each parameter that a client is told at its start.
func (s *Session) Reported(fn func(name, value string)) {
	for _, name := range reported {
		v, _ := s.settings.get(name)
		fn(spelled(name), v)
	}
}

func spelled(name string) string {
	if n, ok := reportedNames[name]; ok {
		return n
	}
	return name
}

// Set gives a parameter a value, as a client's start-up message does. Unknown ones are taken.
func (s *Session) Set(name, value string) error {
	_, err := s.settings.set(strings.ToLower(name), value)
	return err
}

// set checks and stores a value; it returns a notice for a parameter that is not known.
func (s *settings) set(name, value string) (*bind.Notice, error) {
	if fixed[name] {
		return nil, pgerr.Newf("55P02", "parameter \"%s\" cannot be changed", name)
	}
	invalid := func() error {
		return pgerr.Newf("22023", "invalid value for parameter \"%s\": \"%s\"", name, value)
	}
	switch name {
	case "timezone":
		zone, err := pgtype.Zone(value, true)
		if err != nil {
			return nil, invalid()
		}
		s.zone = zone
	case "client_encoding":
		if e := strings.ReplaceAll(strings.ToUpper(value), "-", ""); e != "UTF8" && e != "UNICODE" {
			return nil, pgerr.Newf("0A000", "client_encoding \"%s\" is not supported, only UTF8", value)
		}
		value = "UTF8"
	case "statement_timeout":
		d, err := milliseconds(value)
		if err != nil {
			return nil, invalid()
		}
		s.timeout = d
	case "datestyle":
		if !strings.HasPrefix(strings.ToUpper(value), "ISO") {
			return nil, pgerr.Newf("0A000", "DateStyle \"%s\" is not supported, only ISO", value)
		}
		value = "ISO, MDY"
	case "intervalstyle":
		if strings.ToLower(value) != "postgres" {
			return nil, pgerr.Newf("0A000", "IntervalStyle \"%s\" is not supported, only postgres", value)
		}
	case "bytea_output":
		if strings.ToLower(value) != "hex" {
			return nil, pgerr.Newf("0A000", "bytea_output \"%s\" is not supported, only hex", value)
		}
	case "standard_conforming_strings":
		if v := strings.ToLower(value); v != "on" && v != "true" && v != "1" {
			return nil, pgerr.New("0A000", "standard_conforming_strings cannot be turned off")
		}
		value = "on"
	}
	_, known := defaults[name]
	s.values[name] = value
	if !known && !strings.Contains(name, ".") {
		return &bind.Notice{Code: "00000", Message: "parameter \"" + name + "\" is not known here; it is taken and has no effect"}, nil
	}
	return nil, nil
}

// milliseconds reads a time as PostgreSQL's settings do: a number of milliseconds, or with a unit.
func milliseconds(value string) (time.Duration, error) {
	v := strings.TrimSpace(value)
	if n, err := strconv.ParseInt(v, 10, 64); err == nil && n >= 0 {
		return time.Duration(n) * time.Millisecond, nil
	}
	d, err := time.ParseDuration(strings.ReplaceAll(strings.ReplaceAll(v, "min", "m"), " ", ""))
	if err == nil && d < 0 {
		err = strconv.ErrRange
	}
	return d, err
}

func (s *Session) runSet(st *ast.Set) (string, error) {
	value := optionText(st.Values)
	if st.Interval != nil {
		return "", pgerr.New("0A000", "SET TIME ZONE INTERVAL is not supported: name the zone").At(st.Pos() + 1)
	}
	if st.Default {
		return "SET", s.reset(st.Name)
	}
	old, had := s.settings.values[st.Name]
	notice, err := s.settings.set(st.Name, value)
	if err != nil {
		return "", err
	}
	if st.Scope == ast.ScopeLocal {
		if s.tx == nil {
			s.restoreSetting(st.Name, old, had)
			return "SET", s.out.Notice(bind.Notice{Code: "25P01", Message: "SET LOCAL can only be used in transaction blocks"})
		}
		if s.settings.before == nil {
			s.settings.before = map[string]string{}
		}
		if _, ok := s.settings.before[st.Name]; !ok {
			s.settings.before[st.Name] = old
		}
	}
	if notice != nil {
		if err := s.out.Notice(*notice); err != nil {
			return "", err
		}
	}
	return "SET", s.report(st.Name)
}

func (s *Session) report(name string) error {
	if !slices.Contains(reported, name) {
		return nil
	}
	v, _ := s.settings.get(name)
	return s.out.Parameter(spelled(name), v)
}

func (s *Session) restoreSetting(name, old string, had bool) {
	if had && old != "" {
		_, _ = s.settings.set(name, old)
		return
	}
	_ = s.resetQuietly(name)
}

func (s *Session) resetQuietly(name string) error {
	delete(s.settings.values, name)
	switch name {
	case "timezone":
		s.settings.zone = time.UTC
	case "statement_timeout":
		s.settings.timeout = 0
	}
	return nil
}

func (s *Session) reset(name string) error {
	if name != "" {
		if err := s.resetQuietly(name); err != nil {
			return err
		}
		return s.report(name)
	}
	for n := range s.settings.values {
		if n == "session_authorization" {
			continue
		}
		if err := s.resetQuietly(n); err != nil {
			return err
		}
		if err := s.report(n); err != nil {
			return err
		}
	}
	return nil
}

// endLocal restores what SET LOCAL has covered.
func (s *Session) endLocal() {
	for name, old := range s.settings.before {
		s.restoreSetting(name, old, old != "")
	}
	s.settings.before = nil
}

func optionText(values []ast.OptionValue) string {
	var parts []string
	for _, v := range values {
		parts = append(parts, v.Text)
	}
	return strings.Join(parts, ", ")
}

// text is how values are read from text in this session.
func (s *Session) text() *pgtype.Context { return &pgtype.Context{Zone: s.settings.zone} }
