package session

import (
	"maps"
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
	startup  map[string]string // what the client's start-up message gave: RESET goes back to it
	zone     *time.Location
	// Of a statement, of a wait for a table that another transaction writes to, and of a client that does nothing in a transaction; 0: none.
	timeout, lockTimeout, idleTimeout time.Duration
}

// defaultIdleTimeout ends clients that leave a transaction open, which keeps others from its tables. PostgreSQL's has none by default; it locks rows.
const defaultIdleTimeout = 10 * time.Minute

// maxSettings bounds the parameters that a session has set: any name is taken.
const maxSettings = 1000

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
	"idle_in_transaction_session_timeout": shownTime(defaultIdleTimeout),
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
	s.zone, s.idleTimeout = time.UTC, defaultIdleTimeout
}

func (s *settings) get(name string) (string, bool) {
	if v, ok := s.values[name]; ok {
		return v, true
	}
	v, ok := defaults[name]
	return v, ok
}

// Reported calls fn for each parameter that a client follows and that has changed since the last call; at first they all have.
func (s *Session) Reported(fn func(name, value string)) {
	if s.told != nil && !s.changed {
		return
	}
	if s.told == nil {
		s.told = map[string]string{}
	}
	s.changed = false
	for _, name := range reported {
		v, _ := s.settings.get(name)
		if told, ok := s.told[name]; !ok || told != v {
			s.told[name] = v
			fn(spelled(name), v)
		}
	}
}

func spelled(name string) string {
	if n, ok := reportedNames[name]; ok {
		return n
	}
	return name
}

// Set gives a parameter a value, as a client's start-up message does, which is then its default. Unknown ones are taken.
func (s *Session) Set(name, value string) error {
	name = strings.ToLower(name)
	if _, err := s.settings.set(name, value); err != nil {
		return err
	}
	if s.settings.startup == nil {
		s.settings.startup = map[string]string{}
	}
	s.settings.startup[name] = s.settings.values[name]
	return nil
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
	case "statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout":
		d, err := milliseconds(value)
		if err != nil {
			return nil, invalid()
		}
		switch name {
		case "statement_timeout":
			s.timeout = d
		case "lock_timeout":
			s.lockTimeout = d
		default:
			s.idleTimeout = d
		}
		value = shownTime(d)
	case "default_transaction_isolation", "transaction_isolation":
		value = strings.ToLower(value)
		if err := checkIsolation(value); err != nil {
			return nil, err
		}
	case "default_transaction_read_only", "transaction_read_only":
		switch strings.ToLower(value) {
		case "on", "true", "yes", "1":
			value = "on"
		case "off", "false", "no", "0":
			value = "off"
		default:
			return nil, pgerr.Newf("22023", "parameter \"%s\" requires a Boolean value", name)
		}
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
	if _, set := s.values[name]; !set && len(s.values) >= maxSettings {
		return nil, pgerr.Newf("54000", "more than %d parameters are set", maxSettings).WithHint("RESET ALL forgets those that are not known here.")
	}
	s.values[name] = value
	if !known && !strings.Contains(name, ".") {
		return &bind.Notice{Code: "00000", Message: "parameter \"" + name + "\" is not known here; it is taken and has no effect"}, nil
	}
	return nil, nil
}

// milliseconds reads a time as PostgreSQL's settings do: a number of milliseconds, or with a unit.
func milliseconds(value string) (time.Duration, error) {
	v := strings.TrimSpace(value)
	digits := 0
	for digits < len(v) && v[digits] >= '0' && v[digits] <= '9' {
		digits++
	}
	n, err := strconv.ParseInt(v[:digits], 10, 32)
	if err != nil {
		return 0, err
	}
	unit, ok := timeUnits[strings.TrimSpace(v[digits:])]
	d := time.Duration(n) * unit
	if !ok || d > maxTimeout {
		return 0, strconv.ErrRange
	}
	return d, nil
}

var timeUnits = map[string]time.Duration{
	"": time.Millisecond, "us": time.Microsecond, "ms": time.Millisecond, "s": time.Second, "min": time.Minute, "h": time.Hour, "d": 24 * time.Hour,
}

// maxTimeout is what PostgreSQL's settings can hold: 32 bits of milliseconds.
const maxTimeout = (1<<31 - 1) * time.Millisecond

// shownTime writes a time as SHOW does: in the largest unit that gives a whole number.
func shownTime(d time.Duration) string {
	for _, unit := range []string{"d", "h", "min", "s", "ms"} {
		if d > 0 && d%timeUnits[unit] == 0 {
			return strconv.FormatInt(int64(d/timeUnits[unit]), 10) + unit
		}
	}
	return strconv.FormatInt(d.Milliseconds(), 10)
}

func (s *Session) runSet(st *ast.Set) (string, error) {
	value := optionText(st.Values)
	if st.Interval != nil {
		return "", pgerr.New("0A000", "SET TIME ZONE INTERVAL is not supported: name the zone").At(st.Pos() + 1)
	}
	s.implicit()
	if st.Scope == ast.ScopeLocal && s.tx == nil {
		return "SET", s.out.Notice(bind.Notice{Code: "25P01", Message: "SET LOCAL can only be used in transaction blocks"})
	}
	s.keepSettings()
	if st.Scope == ast.ScopeLocal {
		if s.local == nil {
			s.local = map[string]covered{}
		}
		if _, ok := s.local[st.Name]; !ok {
			value, set := s.settings.values[st.Name]
			s.local[st.Name] = covered{value, set}
		}
	} else {
		delete(s.local, st.Name) // what is set for the session outlives what was set for the transaction
	}
	if st.Default {
		s.reset(st.Name)
		return "SET", nil
	}
	return "SET", s.change(st.Name, value)
}

// change sets a parameter.
func (s *Session) change(name, value string) error {
	notice, err := s.settings.set(name, value)
	if err != nil {
		return err
	}
	s.changed = true
	if notice != nil {
		return s.out.Notice(*notice)
	}
	return nil
}

// keepSettings remembers the settings where a rollback may have to bring them back.
func (s *Session) keepSettings() {
	if s.tx == nil {
		return
	}
	var kept *settings
	keep := func(at **settings) {
		if *at != nil {
			return
		}
		if kept == nil {
			c := s.settings
			c.values = maps.Clone(c.values)
			kept = &c
		}
		*at = kept
	}
	keep(&s.tx.before)
	for i := range s.tx.saves {
		keep(&s.tx.saves[i].settings)
	}
}

// restore brings settings back.
func (s *Session) restore(before *settings) {
	s.settings = *before
	s.settings.values = maps.Clone(before.values) // others may remember them too
	s.changed = true
	if s.tx == nil {
		s.local = nil
	}
}

// reset gives a parameter, or all if name is empty, its default.
func (s *Session) reset(name string) {
	s.changed = true
	if name == "" {
		for _, n := range slices.Collect(maps.Keys(s.settings.values)) {
			if n != "session_authorization" {
				s.reset(n)
			}
		}
		return
	}
	delete(s.settings.values, name)
	switch name {
	case "timezone":
		s.settings.zone = time.UTC
	case "statement_timeout":
		s.settings.timeout = 0
	case "lock_timeout":
		s.settings.lockTimeout = 0
	case "idle_in_transaction_session_timeout":
		s.settings.idleTimeout = defaultIdleTimeout
	}
	if v, ok := s.settings.startup[name]; ok {
		_, _ = s.settings.set(name, v) // it was taken before
	}
}

// covered is what SET LOCAL has covered: the session's value, if it had one of its own.
type covered struct {
	value string
	set   bool
}

// endLocal restores what SET LOCAL has covered.
func (s *Session) endLocal() {
	for name, old := range s.local {
		s.reset(name)
		if old.set {
			_, _ = s.settings.set(name, old.value) // it was taken before
		}
	}
	s.local = nil
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
