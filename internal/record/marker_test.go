package record

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAMarkerComesBackAsItWas(t *testing.T) {
	t.Parallel()
	for _, want := range []EndMarker{
		{ProducerID: 7, ProducerEpoch: 3, Commit: true, CoordinatorEpoch: 9, Timestamp: 1234, First: 55},
		{ProducerID: 1 << 40, ProducerEpoch: 32767, Timestamp: 1, First: -1},
	} {
		b := want.AppendTo(nil)
		h, err := Validate(b)
		if err != nil || !h.Control() || !h.Transactional() || h.Count != 1 || h.BaseSequence != -1 {
			t.Fatalf("%+v, %v", h, err)
		}
		got, ok, err := ParseEndMarker(b)
		if err != nil || !ok || got != want {
			t.Errorf("%v %v %s", ok, err, cmp.Diff(want, got))
		}
	}
}

func FuzzParseEndMarker(f *testing.F) {
	f.Add((&EndMarker{ProducerID: 7, Commit: true, First: 3}).AppendTo(nil))
	f.Fuzz(func(_ *testing.T, b []byte) {
		if h, err := Validate(b); err == nil && h.Control() {
			_, _, _ = ParseEndMarker(b)
		}
	})
}
