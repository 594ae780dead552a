package group

import (
	"testing"
	"time"
)

var (
	epoch  = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	config = Config{InitialDelay: 3 * time.Second, MinSession: time.Second, MaxSession: time.Minute, MaxMembers: 100}
)

// script drives a group and keeps the last reply of each token.
type script struct {
	t       *testing.T
	g       *Group
	now     time.Time
	token   Token
	replies map[Token]Reply
	wake    time.Time
	persist int
}

func newScript(t *testing.T, cfg Config) *script {
	return &script{t: t, g: New(cfg, epoch), now: epoch, replies: map[Token]Reply{}}
}

func (s *script) step(ev Event) {
	out := s.g.Step(s.now, ev)
	for _, r := range out.Replies {
		if _, dup := s.replies[r.Token]; dup {
			s.t.Fatalf("token %d answered twice", r.Token)
		}
		s.replies[r.Token] = r
	}
	s.wake = out.Wake
	if out.Persist {
		s.persist++
	}
}

// pass lets time go by, ticking when the group asks for it.
func (s *script) pass(d time.Duration) {
	end := s.now.Add(d)
	for !s.wake.IsZero() && !s.wake.After(end) {
		if s.wake.After(s.now) {
			s.now = s.wake
		}
		s.step(Tick{})
	}
	s.now = end
	s.step(Tick{})
}

func (s *script) join(id, newID string, change ...func(*Join)) Token {
	s.token++
	ev := Join{
		Token: s.token, MemberID: id, NewID: newID, Session: 10 * time.Second, Rebalance: 30 * time.Second, Kind: "consumer",
		Protocols: []Protocol{{Name: "range", Metadata: []byte("t")}},
	}
	for _, fn := range change {
		fn(&ev)
	}
	s.step(ev)
	return ev.Token
}

func (s *script) sync(id string, generation int32, assignments map[string][]byte) Token {
	s.token++
	s.step(Sync{Token: s.token, MemberID: id, Generation: generation, Assignments: assignments})
	return s.token
}

func (s *script) heartbeat(id string, generation int32) Code {
	s.token++
	s.step(Heartbeat{Token: s.token, MemberID: id, Generation: generation})
	return s.want(s.token).Code
}

func (s *script) want(t Token) Reply {
	s.t.Helper()
	r, ok := s.replies[t]
	if !ok {
		s.t.Fatalf("token %d has no reply", t)
	}
	return r
}

func (s *script) waits(t Token) {
	s.t.Helper()
	if r, ok := s.replies[t]; ok {
		s.t.Fatalf("token %d is answered early: %+v", t, r)
	}
}

func (s *script) state(want State) {
	s.t.Helper()
	if s.g.State() != want {
		s.t.Fatalf("state is %v, want %v", s.g.State(), want)
	}
}

// stable brings a group with the members a (leader) and b to generation 1.
func stable(t *testing.T) *script {
	s := newScript(t, config)
	a, b := s.join("", "a"), s.join("", "b")
	s.pass(3 * time.Second)
	if r := s.want(a); r.Leader != "a" || len(r.Members) != 2 || r.Generation != 1 {
		t.Fatalf("leader's reply: %+v", r)
	}
	if r := s.want(b); r.Leader != "a" || len(r.Members) != 0 {
		t.Fatalf("follower's reply: %+v", r)
	}
	sb := s.sync("b", 1, nil)
	s.waits(sb)
	sa := s.sync("a", 1, map[string][]byte{"a": []byte("0"), "b": []byte("1")})
	if string(s.want(sa).Assignment) != "0" || string(s.want(sb).Assignment) != "1" {
		t.Fatal("assignments are not those of the leader")
	}
	s.state(Stable)
	if s.persist != 1 {
		t.Fatalf("persisted %d times, want 1", s.persist)
	}
	return s
}

func TestMembersThatStartTogetherFormOneGeneration(t *testing.T) {
	t.Parallel()
	stable(t)
}

func TestNewcomersProlongTheFirstWait(t *testing.T) {
	t.Parallel()
	s := newScript(t, config)
	a := s.join("", "a")
	s.pass(2 * time.Second)
	b := s.join("", "b")
	s.pass(2 * time.Second)
	s.waits(a)
	s.pass(time.Second)
	if s.want(a).Generation != 1 || s.want(b).Generation != 1 {
		t.Fatal("not one generation")
	}
}

func TestAMemberWithoutIDIsGivenOne(t *testing.T) {
	t.Parallel()
	s := newScript(t, Config{MinSession: time.Second, MaxSession: time.Minute, MaxMembers: 2})
	known := func(j *Join) { j.KnownIDOnly = true }
	first := s.want(s.join("", "a", known))
	if first.Code != MemberIDRequired || first.MemberID != "a" {
		t.Fatalf("got %+v", first)
	}
	if r := s.want(s.join("a", "x", known)); r.Code != OK || r.Generation != 1 || r.MemberID != "a" {
		t.Fatalf("got %+v", r)
	}
	if r := s.want(s.join("b", "x", known)); r.Code != UnknownMember {
		t.Fatalf("an id nobody gave out: %+v", r)
	}
	s.join("", "c", known)
	if r := s.want(s.join("", "d", known)); r.Code != GroupFull {
		t.Fatalf("ids given out do not count: %+v", r)
	}
	s.pass(10 * time.Second) // c is never used and expires
	if r := s.want(s.join("c", "x", known)); r.Code != UnknownMember {
		t.Fatalf("an id outlived its time: %+v", r)
	}
}

func TestJoinIsRefused(t *testing.T) {
	t.Parallel()
	s := stable(t)
	for name, c := range map[string]struct {
		change func(*Join)
		want   Code
	}{
		"session too short": {func(j *Join) { j.Session = time.Millisecond }, InvalidSession},
		"session too long":  {func(j *Join) { j.Session = time.Hour }, InvalidSession},
		"no protocols":      {func(j *Join) { j.Protocols = nil }, InconsistentProtocol},
		"other kind":        {func(j *Join) { j.Kind = "connect" }, InconsistentProtocol},
		"nothing in common": {func(j *Join) { j.Protocols = []Protocol{{Name: "sticky"}} }, InconsistentProtocol},
	} {
		if got := s.want(s.join("", "n", c.change)).Code; got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	s.state(Stable)
}

func TestTheStrategyIsOneThatAllOffer(t *testing.T) {
	t.Parallel()
	s := newScript(t, config)
	offer := func(names ...string) func(*Join) {
		return func(j *Join) {
			j.Protocols = nil
			for _, n := range names {
				j.Protocols = append(j.Protocols, Protocol{Name: n})
			}
		}
	}
	a := s.join("", "a", offer("sticky", "range", "robin"))
	s.join("", "b", offer("robin", "range"))
	s.join("", "c", offer("range", "robin"))
	s.pass(3 * time.Second)
	if got := s.want(a).Protocol; got != "range" {
		t.Fatalf("chose %q, want range: two prefer it among those all offer", got)
	}
}

func TestADeadMemberIsReplaced(t *testing.T) {
	t.Parallel()
	s := stable(t)
	for range 3 {
		s.pass(4 * time.Second)
		if c := s.heartbeat("a", 1); c == RebalanceInProgress {
			break
		}
	}
	s.state(PreparingRebalance)
	r := s.want(s.join("a", ""))
	if r.Generation != 2 || len(r.Members) != 1 {
		t.Fatalf("got %+v", r)
	}
	if c := s.heartbeat("b", 1); c != UnknownMember {
		t.Fatalf("the dead member's heartbeat: %d", c)
	}
	if c := s.g.MayCommit(s.now, "b", "", 1); c != UnknownMember {
		t.Fatalf("the dead member's commit: %d", c)
	}
}

func TestALeaverBeginsARebalance(t *testing.T) {
	t.Parallel()
	s := stable(t)
	s.token++
	s.step(Leave{Token: s.token, Members: []Leaver{{MemberID: "b"}, {MemberID: "nobody"}}})
	if r := s.want(s.token); len(r.Leavers) != 2 || r.Leavers[0] != OK || r.Leavers[1] != UnknownMember {
		t.Fatalf("got %+v", r)
	}
	s.state(PreparingRebalance)
	s.token++
	s.step(Leave{Token: s.token, Members: []Leaver{{MemberID: "a"}}})
	s.state(Empty)
	if s.g.Generation() != 2 || s.g.EmptySince() != s.now {
		t.Fatalf("generation %d, empty since %v", s.g.Generation(), s.g.EmptySince())
	}
}

func TestWhoDoesNotJoinAgainIsLeftBehind(t *testing.T) {
	t.Parallel()
	s := stable(t)
	c := s.join("", "c")
	a := s.join("a", "")
	// b keeps up its heartbeats and does not join.
	for range 29 {
		s.pass(time.Second)
		s.heartbeat("b", 1)
	}
	s.waits(a)
	s.pass(2 * time.Second)
	if r := s.want(a); r.Generation != 2 || len(r.Members) != 2 {
		t.Fatalf("got %+v", r)
	}
	if s.want(c).Code != OK {
		t.Fatal("the newcomer is not in")
	}
}

func TestALeaderThatDoesNotAssignIsReplaced(t *testing.T) {
	t.Parallel()
	s := newScript(t, config)
	s.join("", "a")
	s.join("", "b")
	s.pass(3 * time.Second)
	sb := s.sync("b", 1, nil)
	for range 6 {
		s.pass(5 * time.Second)
		s.heartbeat("a", 1) // alive, but it brings nothing
	}
	if r := s.want(sb); r.Code != RebalanceInProgress {
		t.Fatalf("got %+v", r)
	}
	if r := s.want(s.join("b", "")); r.Leader != "b" {
		t.Fatalf("got %+v", r)
	}
}

func TestAStaticMemberComesBackUnnoticed(t *testing.T) {
	t.Parallel()
	s := newScript(t, config)
	static := func(instance string) func(*Join) {
		return func(j *Join) { j.Instance, j.KnownIDOnly, j.SkipAssignment = instance, true, true }
	}
	s.join("", "a1", static("A"))
	s.join("", "b1", static("B"))
	s.pass(3 * time.Second)
	s.sync("b1", 1, nil)
	s.sync("a1", 1, map[string][]byte{"a1": []byte("0"), "b1": []byte("1")})
	s.state(Stable)

	r := s.want(s.join("", "b2", static("B"), func(j *Join) { j.Protocols[0].Metadata = []byte("says that it holds nothing") }))
	if r.Code != OK || r.Generation != 1 || r.MemberID != "b2" {
		t.Fatalf("follower: %+v", r)
	}
	if got := s.want(s.sync("b2", 1, nil)); string(got.Assignment) != "1" {
		t.Fatalf("assignment after the return: %+v", got)
	}
	s.token++
	s.step(Heartbeat{Token: s.token, MemberID: "b1", Instance: "B", Generation: 1})
	if got := s.want(s.token).Code; got != FencedInstance {
		t.Fatalf("the old process: %d", got)
	}
	r = s.want(s.join("", "a2", static("A")))
	if r.Code != OK || r.Generation != 1 || r.Leader != "a2" || !r.SkipAssignment || len(r.Members) != 2 {
		t.Fatalf("leader: %+v", r)
	}
	s.state(Stable)
	s.token++
	s.step(Leave{Token: s.token, Members: []Leaver{{Instance: "B"}}})
	if got := s.want(s.token).Leavers[0]; got != OK {
		t.Fatalf("removed by instance: %d", got)
	}
}

func TestALostAnswerIsGivenAgain(t *testing.T) {
	t.Parallel()
	s := newScript(t, config)
	s.join("", "a")
	s.join("", "b")
	s.pass(3 * time.Second)
	if r := s.want(s.join("a", "")); r.Generation != 1 || len(r.Members) != 2 {
		t.Fatalf("got %+v", r)
	}
	s.state(CompletingRebalance)
}

func TestCommitsAreForMembersOfTheGeneration(t *testing.T) {
	t.Parallel()
	s := stable(t)
	for _, c := range []struct {
		member     string
		generation int32
		want       Code
	}{{"a", 1, OK}, {"a", 0, IllegalGeneration}, {"a", 2, IllegalGeneration}, {"x", 1, UnknownMember}, {"", -1, UnknownMember}} {
		if got := s.g.MayCommit(s.now, c.member, "", c.generation); got != c.want {
			t.Errorf("%q in %d: %d, want %d", c.member, c.generation, got, c.want)
		}
	}
	if got := New(config, epoch).MayCommit(epoch, "", "", -1); got != OK {
		t.Errorf("without members: %d", got)
	}
}

func TestAGroupSurvivesARestart(t *testing.T) {
	t.Parallel()
	s := stable(t)
	later := s.now.Add(time.Hour)
	g, err := Restore(config, s.g.Snapshot(), later)
	if err != nil {
		t.Fatal(err)
	}
	s.g, s.now = g, later
	if c := s.heartbeat("b", 1); c != OK {
		t.Fatalf("heartbeat after the restart: %d", c)
	}
	if r := s.want(s.sync("b", 1, nil)); string(r.Assignment) != "1" {
		t.Fatalf("got %+v", r)
	}
	for _, bad := range []string{"", "{}", `{"v":2}`, `{"v":1,"state":3,"members":[null]}`} {
		if _, err := Restore(config, []byte(bad), later); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
