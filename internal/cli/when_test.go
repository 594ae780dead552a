package cli

import (
	"testing"
	"time"
)

func TestTimesAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("X", 2*3600)
	now := time.Date(2026, 3, 11, 14, 30, 15, 0, zone)
	for text, want := range map[string]string{
		"2026-01-31T09:00:00Z":         "2026-01-31T09:00:00Z",
		"2026-01-31T09:00:00.25+01:00": "2026-01-31T08:00:00.25Z",
		"2026-01-31 09:00:00Z":         "2026-01-31T09:00:00Z",
		"2026-01-31":                   "2026-01-30T22:00:00Z",
		"2026-01-31 09:00":             "2026-01-31T07:00:00Z",
		"2026-01-31T09:00:30":          "2026-01-31T07:00:30Z",
		"@1769850000":                  "2026-01-31T09:00:00Z",
		"@1769850000123":               "2026-01-31T09:00:00.123Z",
		"now":                          "2026-03-11T12:30:15Z",
		"today":                        "2026-03-10T22:00:00Z",
		" Yesterday ":                  "2026-03-09T22:00:00Z",
		"last hour":                    "2026-03-11T11:30:15Z",
		"last  week":                   "2026-03-04T12:30:15Z",
		"last month":                   "2026-02-11T12:30:15Z",
		"2 hours ago":                  "2026-03-11T10:30:15Z",
		"an hour ago":                  "2026-03-11T11:30:15Z",
		"1 year ago":                   "2025-03-11T12:30:15Z",
		"-24h":                         "2026-03-10T12:30:15Z",
		"-1d12h":                       "2026-03-10T00:30:15Z",
		"-2w":                          "2026-02-25T12:30:15Z",
		"-250ms":                       "2026-03-11T12:30:14.75Z",
	} {
		got, err := parseWhen(text, now)
		if err != nil || got.UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("%q: got %s, %v, want %s", text, got.UTC().Format(time.RFC3339Nano), err, want)
		}
	}
	for _, text := range []string{"", "soon", "24h", "-", "-5", "-5x", "5 ago", "@", "@x", "last year's", "2026-13-01", "99999999999999999999 hours ago", "-99999999999999999w"} {
		if got, err := parseWhen(text, now); err == nil {
			t.Errorf("%q: got %s, want an error", text, got)
		}
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 11, 14, 30, 15, 0, time.UTC)
	for text, want := range map[string]target{
		"start":    {kind: targetStart},
		"Earliest": {kind: targetStart},
		"end":      {kind: targetEnd},
		"latest":   {kind: targetEnd},
		"42":       {kind: targetOffset, n: 42},
		"+10":      {kind: targetStart, n: 10},
		"-10":      {kind: targetEnd, n: 10},
		"-10h":     {kind: targetTime, at: now.Add(-10 * time.Hour)},
		"today":    {kind: targetTime, at: now.Truncate(24 * time.Hour)},
	} {
		if got, err := parseTarget(text, now); err != nil || got != want {
			t.Errorf("%q: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	if _, err := parseTarget("somewhere", now); err == nil {
		t.Error("somewhere is a place")
	}
}
