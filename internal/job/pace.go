package job

import "time"

// Bounds of the time between two epochs of an island. Commits cost at most a tenth of the machine: the next epoch waits for ten times
// the CPU time that the last commit took, within these.
const (
	minEpochGap   = time.Millisecond
	maxEpochGap   = 200 * time.Millisecond
	commitShare   = 10
	epochWorkTime = 100 * time.Millisecond // how long an epoch's reading should take, which bounds how much it reads
)

// pace decides when the next epoch of an island starts and how much it reads. It is pure: time is passed in.
type pace struct {
	notBefore time.Time
	records   int64 // how many records an epoch may read, over all partitions
}

const (
	startRecords = 16 << 10
	minRecords   = 1 << 10
	maxRecords   = 4 << 20
)

func newPace() pace { return pace{records: startRecords} }

// committed notes an epoch that read so many records in so much time, and whose commit, done now, took so much CPU time.
func (p *pace) committed(now time.Time, commitCPU time.Duration, read int64, work time.Duration) {
	gap := min(max(commitShare*commitCPU, minEpochGap), maxEpochGap)
	p.notBefore = now.Add(gap)
	if read < p.records/2 || work <= 0 {
		return // it was not the bound that ended it: nothing is learnt about speed
	}
	target := float64(read) * float64(epochWorkTime) / float64(work)
	p.records = int64(min(max(target, minRecords), maxRecords, float64(p.records)*2))
	p.records = max(p.records, minRecords)
}

// wait is how long to wait from now until the next epoch may start.
func (p *pace) wait(now time.Time) time.Duration { return max(p.notBefore.Sub(now), 0) }
