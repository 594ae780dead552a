package session

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/leat-io/leat/internal/pgerr"
)

func TestSettingsAreChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, value, shown, code string }{
		{"timezone", "Europe/Zurich", "Europe/Zurich", ""},
		{"timezone", "Nowhere/Land", "", "22023"},
		{"client_encoding", "utf-8", "UTF8", ""},
		{"client_encoding", "latin1", "", "0A000"},
		{"statement_timeout", "1500", "1500ms", ""},
		{"statement_timeout", "120000", "2min", ""},
		{"statement_timeout", "24 h", "1d", ""},
		{"statement_timeout", "0", "0", ""},
		{"statement_timeout", "2147483647", "2147483647ms", ""},
		{"statement_timeout", "2147483648", "", "22023"},
		{"statement_timeout", "30d", "", "22023"},
		{"statement_timeout", "-1", "", "22023"},
		{"statement_timeout", "5 weeks", "", "22023"},
		{"statement_timeout", "", "", "22023"},
		{"lock_timeout", "1s", "1s", ""},
		{"default_transaction_read_only", "TRUE", "on", ""},
		{"default_transaction_read_only", "perhaps", "", "22023"},
		{"transaction_isolation", "Read Committed", "read committed", ""},
		{"transaction_isolation", "serializable", "", "0A000"},
		{"datestyle", "iso, dmy", "ISO, MDY", ""},
		{"datestyle", "German", "", "0A000"},
		{"standard_conforming_strings", "off", "", "0A000"},
		{"server_version", "16", "", "55P02"},
		{"my.own", "x", "x", ""},
	} {
		var s settings
		s.init("me", "db")
		notice, err := s.set(c.name, c.value)
		var pe *pgerr.Error
		switch {
		case c.code != "":
			if !errors.As(err, &pe) || pe.Code != c.code {
				t.Errorf("%s = %q: %v, want code %s", c.name, c.value, err, c.code)
			}
		case err != nil || notice != nil:
			t.Errorf("%s = %q: %v, %v", c.name, c.value, notice, err)
		default:
			if got, ok := s.get(c.name); !ok || got != c.shown {
				t.Errorf("%s = %q is shown as %q, want %q", c.name, c.value, got, c.shown)
			}
		}
	}
}

func TestAnUnknownSettingIsTakenWithANotice(t *testing.T) {
	t.Parallel()
	var s settings
	s.init("me", "db")
	notice, err := s.set("enable_seqscan", "off")
	if err != nil || notice == nil {
		t.Fatal(notice, err)
	}
	if v, ok := s.get("enable_seqscan"); !ok || v != "off" {
		t.Errorf("it is %q", v)
	}
}

func TestResetBringsTheDefaultsBack(t *testing.T) {
	t.Parallel()
	s := &Session{}
	s.settings.init("me", "db")
	for _, set := range [][2]string{{"timezone", "Europe/Zurich"}, {"statement_timeout", "5s"}, {"lock_timeout", "5s"}, {"idle_in_transaction_session_timeout", "5s"}} {
		if _, err := s.settings.set(set[0], set[1]); err != nil {
			t.Fatal(err)
		}
	}
	s.reset("")
	if s.settings.zone != time.UTC || s.settings.timeout != 0 || s.settings.lockTimeout != 0 || s.settings.idleTimeout != defaultIdleTimeout {
		t.Errorf("%+v", s.settings)
	}
	if user, _ := s.settings.get("session_authorization"); user != "me" {
		t.Errorf("the user is %q", user)
	}
}

// A client may set any name: what that keeps is bounded.
func TestSettingsAreBounded(t *testing.T) {
	t.Parallel()
	var s settings
	s.init("me", "db")
	var err error
	for i := 0; err == nil && i < 2*maxSettings; i++ {
		_, err = s.set("my.setting"+strconv.Itoa(i), "x")
	}
	if e := pgerr.From(err); e == nil || e.Code != "54000" || len(s.values) != maxSettings {
		t.Errorf("%d are kept, %v", len(s.values), err)
	}
}

// TestOnlyWhatHasChangedIsReported follows what a client is told of its parameters.
func TestOnlyWhatHasChangedIsReported(t *testing.T) {
	t.Parallel()
	s := &Session{}
	s.settings.init("me", "db")
	told := func() map[string]string {
		m := map[string]string{}
		s.Reported(func(name, value string) { m[name] = value })
		return m
	}
	if first := told(); len(first) != len(reported) || first["TimeZone"] != "UTC" || first["session_authorization"] != "me" {
		t.Errorf("at first: %v", first)
	}
	if again := told(); len(again) != 0 {
		t.Errorf("nothing has changed: %v", again)
	}
	if _, err := s.settings.set("timezone", "Europe/Zurich"); err != nil {
		t.Fatal(err)
	}
	s.changed = true
	if after := told(); len(after) != 1 || after["TimeZone"] != "Europe/Zurich" {
		t.Errorf("after a change: %v", after)
	}
}
