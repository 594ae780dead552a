package pgtype

import (
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // the zones come with the binary, whatever the machine has

	"github.com/leat-io/leat/internal/pgerr"
)

// OffsetAt is the seconds east of UTC that hold in a zone at an instant.
func OffsetAt(zone *time.Location, us int64) int {
	if zone == time.UTC || zone == nil {
		return 0
	}
	_, off := time.Unix(floorDiv(us, microsPerSecond), 0).In(zone).Zone()
	return off
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// ToUTC converts a local timestamp in a zone to an instant, as PostgreSQL does: a time that a forward change skips is taken as
// before it, one that a backward change repeats as after it.
func ToUTC(local int64, zone *time.Location) int64 {
	if zone == time.UTC || zone == nil {
		return local
	}
	before := int64(OffsetAt(zone, local-microsPerDay)) * microsPerSecond
	after := int64(OffsetAt(zone, local+microsPerDay)) * microsPerSecond
	if before == after {
		// No change around, or a pair of them within two days, which the offset at the result shows.
		if off := int64(OffsetAt(zone, local-before)) * microsPerSecond; off != before && int64(OffsetAt(zone, local-off))*microsPerSecond == off {
			return local - off
		}
		return local - before
	}

	okAfter := int64(OffsetAt(zone, local-after))*microsPerSecond == after
	if okAfter {
		return local - after
	}

	return local - before
}

// ToLocal is the local timestamp in a zone of an instant.
func ToLocal(us int64, zone *time.Location) int64 {
	return us + int64(OffsetAt(zone, us))*microsPerSecond
}

// abbreviations are the zone abbreviations that PostgreSQL knows by default, and their seconds east of UTC.
var abbreviations = map[string]int{
	"utc": 0, "z": 0, "zulu": 0, "gmt": 0, "uct": 0, "ut": 0, "wet": 0,
	"acdt": 37800, "acst": 34200, "adt": -10800, "aedt": 39600, "aest": 36000, "akdt": -28800, "akst": -32400, "ast": -14400, "awst": 28800,
	"bst": 3600, "bdst": 7200, "cat": 7200, "cdt": -18000, "cest": 7200, "cet": 3600, "cetdst": 7200, "cst": -21600, "cadt": 37800, "east": -18000,
	"eat": 10800, "edt": -14400, "eest": 10800, "eet": 7200, "eetdst": 10800, "est": -18000, "fet": 10800, "gst": 14400, "hkt": 28800,
	"hst": -36000, "ict": 25200, "idt": 10800, "ist": 7200, "jst": 32400, "kst": 32400, "mdt": -21600, "mest": 7200, "met": 3600,
	"metdst": 7200, "mez": 3600, "mest2": 7200, "msd": 14400, "msk": 10800, "mst": -25200, "ndt": -9000, "nst": -12600, "nzdt": 46800,
	"nzst": 43200, "pdt": -25200, "pht": 28800, "pkt": 18000, "pst": -28800, "sast": 7200, "sgt": 28800, "west": 3600, "wib": 25200,
	"wit": 32400, "wita": 28800, "wast": 7200, "wat": 3600, "npt": 20700, "uzt": 18000, "wetdst": 3600, "sadt": 37800, "nft": 39600,
	"akst9": -32400, "brt": -10800, "brst": -7200, "art": -10800, "clt": -14400, "clst": -10800, "cot": -18000, "pet": -18000, "uyt": -10800,
}

var zones struct {
	sync.RWMutex
	byName map[string]*time.Location
}

// Zone is the time zone with a name: one of the tz database in any case, an abbreviation, an ISO offset such as "+05:30" in the
// sense of text input (east is positive) when iso is true, or else in POSIX's sense (west is positive), as SET timezone and
// AT TIME ZONE take it. The error is 22023.
func Zone(name string, iso bool) (*time.Location, error) {
	trimmed := strings.TrimSpace(name)
	if len(trimmed) > 0 && len(trimmed) <= 64 {
		if z := lookupZone(trimmed); z != nil {
			return z, nil
		}
		if off, ok := posixOffset(trimmed); ok {
			if iso {
				off = -off
			}
			return time.FixedZone(trimmed, off), nil
		}
	}
	return nil, pgerr.Newf(pgerr.InvalidParameterValue, "time zone \"%s\" not recognized", clip(name))
}

func clip(s string) string {
	if len(s) > 100 {
		return strings.ToValidUTF8(s[:100], "") + "..."
	}
	return s
}

// posixOffset reads "+3", "UTC-05:30" and the like; the result is seconds east of UTC, POSIX's sign turned round.
func posixOffset(s string) (int, bool) {
	i := strings.IndexAny(s, "+-")
	if i < 0 {
		return 0, false
	}
	switch strings.ToLower(s[:i]) {
	case "", "utc", "gmt", "z":
	default:
		return 0, false
	}
	off, ok := zoneOffset([]byte(s[i:]))
	return -off, ok
}

// lookupZone finds a zone by name or abbreviation; nil when there is none.
func lookupZone(name string) *time.Location {
	lower := strings.ToLower(name)
	zones.RLock()
	z, ok := zones.byName[lower]
	zones.RUnlock()
	if ok {
		return z
	}
	z = loadZone(name, lower)
	// Words that are no zone are kept as well, since bad rows tend to come in numbers and a search goes to the disk.
	zones.Lock()
	if zones.byName == nil {
		zones.byName = make(map[string]*time.Location)
	}
	if z != nil || len(zones.byName) < maxZoneNames {
		zones.byName[lower] = z
	}
	zones.Unlock()
	return z
}

// maxZoneNames bounds the cache; the tz database has about 600.
const maxZoneNames = 4096

func loadZone(name, lower string) *time.Location {
	switch lower {
	case "utc", "etc/utc", "z", "zulu", "gmt", "uct", "universal", "etc/universal", "etc/uct", "etc/zulu", "etc/gmt":
		return time.UTC
	case "local", "localtime", "posixrules", "factory":
		return nil
	}
	if off, ok := abbreviations[lower]; ok {
		// A name of the tz database such as EST is the same; CET and MET with their summer time are names as well, but
		// as abbreviations they are fixed.
		return time.FixedZone(strings.ToUpper(name), off)
	}
	for i := range len(lower) {
		c := lower[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '/' && c != '_' && c != '-' && c != '+' {
			return nil
		}
	}
	for _, n := range []string{name, titleZone(lower), strings.ToUpper(name)} {
		if z, err := time.LoadLocation(n); err == nil {
			return z
		}
	}
	return nil
}

// titleZone writes a zone's name as the tz database does: america/port_of_spain is America/Port_of_Spain.
func titleZone(lower string) string {
	b := []byte(lower)
	start := true
	for i, c := range b {
		if start && c >= 'a' && c <= 'z' {
			rest := lower[i:]
			if !strings.HasPrefix(rest, "of_") && !strings.HasPrefix(rest, "es_") && !strings.HasPrefix(rest, "au_") {
				b[i] = c - 'a' + 'A'
			}
		}
		start = c == '/' || c == '_' || c == '-'
	}
	return string(b)
}

// zoneOffset reads an offset as text input has it: a sign, then hh, hhmm, hh:mm, hhmmss or hh:mm:ss. The result is seconds east of UTC.
func zoneOffset(s []byte) (int, bool) {
	if len(s) < 2 || s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	var part [3]int
	n, i := 0, 1
	if c := indexColon(s); c < 0 {
		d := s[1:]
		for _, x := range d {
			if x < '0' || x > '9' {
				return 0, false
			}
		}
		switch {
		case len(d) <= 2:
			part[0] = atoi(d)
		case len(d) <= 4:
			part[0], part[1] = atoi(d[:len(d)-2]), atoi(d[len(d)-2:])
		case len(d) <= 6:
			part[0], part[1], part[2] = atoi(d[:len(d)-4]), atoi(d[len(d)-4:len(d)-2]), atoi(d[len(d)-2:])
		default:
			return 0, false
		}
	} else {
		for {
			start := i
			for i < len(s) && s[i] >= '0' && s[i] <= '9' {
				i++
			}
			if i == start || i-start > 2 {
				return 0, false
			}
			part[n] = atoi(s[start:i])
			n++
			if i == len(s) {
				break
			}
			if s[i] != ':' || n == 3 {
				return 0, false
			}
			i++
		}
	}
	if part[0] > 15 || part[1] > 59 || part[2] > 59 {
		return 0, false
	}
	off := part[0]*3600 + part[1]*60 + part[2]
	if s[0] == '-' {
		off = -off
	}
	return off, true
}

func indexColon(s []byte) int {
	for i, c := range s {
		if c == ':' {
			return i
		}
	}
	return -1
}

// atoi is the value of a few digits.
func atoi(s []byte) int {
	n := 0
	for _, c := range s {
		n = n*10 + int(c-'0')
	}
	return n
}
