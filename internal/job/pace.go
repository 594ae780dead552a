package job

import "time"

// Bounds of the time between the starts of two epochs of an island. Commits cost at most a tenth of the machine: from one start to the
// next ten times the time that building the unit took must pass, within these. (Not the time of the sync: that is the disk's.)
const (
	minEpochGap   = time.Millisecond
	maxEpochGap   = 200 * time.Millisecond
	commitShare   = 10
	epochWorkTime = 100 * time.Millisecond // how long an epoch's reading should take, which bounds how much it reads
	// longWorkTime is that of an island whose rows are mostly in the database: the more of them are looked for at once, the cheaper each
	// is. (Only who is behind reads so much.)
	longWorkTime = 400 * time.Millisecond
)

// pace decides when the next epoch of an island starts and how much it reads. It is pure: time is passed in.
type pace struct {
	notBefore time.Time
	records   int64 // how many records an epoch may read, over all partitions
	loads     int64 // rows that were read from the database so far
}

const (
	startRecords = 16 << 10
	minRecords   = 1 << 10
	maxRecords   = 4 << 20
)

func newPace() pace { return pace{records: startRecords} }

// committed notes an epoch that was begun at started, read so many records in so much time, and took so long to be made a unit. loads is how
// many rows were read from the database until its end, since the start.
func (p *pace) committed(started time.Time, commit time.Duration, read int64, work time.Duration, loads int64) {
	long := loads-p.loads > read/4
	p.loads = loads
	p.notBefore = started.Add(min(max(commitShare*commit, minEpochGap), maxEpochGap))
	if read < p.records/2 || work <= 0 {
		return // it was not the bound that ended it: nothing is learnt about speed
	}
	aim := epochWorkTime
	if long {
		aim = longWorkTime
	}
	target := float64(read) * float64(aim) / float64(work)
	p.records = int64(min(max(target, minRecords), maxRecords, float64(p.records)*2))
	p.records = max(p.records, minRecords)
}

// wait is how long to wait from now until the next epoch may start.
func (p *pace) wait(now time.Time) time.Duration { return max(p.notBefore.Sub(now), 0) }
