package mem

import (
	"maps"
	"slices"

	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/domain/serving"
)

// apply writes one event, refusing whatever the real control plane's conditions and constraints refuse.
func (s *controlState) apply(w serving.Workspace, event refresh.Event) error {
	if _, created := event.(refresh.WorkspaceCreated); !created {
		if _, exists := s.fences[w]; !exists {
			return controlDefect("workspace " + string(w) + " does not exist")
		}
	}
	switch e := event.(type) {
	case refresh.WorkspaceCreated:
		if !project.ValidName(string(w)) {
			return controlDefect(string(w) + " cannot name a workspace")
		}
		if _, exists := s.fences[w]; exists {
			return alreadyStored("workspace " + string(w))
		}
		s.fences[w] = 0
		return nil
	case refresh.ReleaseAccepted:
		key := controlRelease{w, e.Release}
		if _, err := project.ParseDigest(string(e.Release)); err != nil || e.Size < 0 {
			return controlDefect("a release has a digest and a size")
		}
		if s.releases[key] {
			return alreadyStored("release " + e.Release.Short())
		}
		s.releases[key] = true
		return nil
	case refresh.Deployed:
		return s.deployed(w, e.Deployment)
	case refresh.RunRequested:
		return s.requested(w, e.Run)
	case refresh.AttemptBegan:
		return s.began(w, e)
	case refresh.SourcesAcquired:
		return s.acquired(w, e)
	case refresh.TableRecorded:
		key := controlTable{w, e.Table}
		switch _, exists := s.tables[key]; {
		case s.fences[w] != e.Fence:
			return fail.New(fail.Fenced, "fenced", "fence %d is not the newest of workspace %q", e.Fence, w)
		case e.Table == "", e.Model == "":
			return controlDefect("a table has a name and a model")
		case exists:
			return alreadyStored("table " + e.Table)
		}
		s.tables[key] = e.Model
		return nil
	case refresh.CandidateCommitted:
		m := e.Candidate.Mark()
		if err := s.step(w, m, refresh.StageBegun, func(row *refresh.Row) { row.Stage, row.Snapshot = refresh.StageCommitted, e.Candidate.Snapshot() }); err != nil {
			return err
		}
		delete(s.protections, controlHold{workspace: w, kind: "attempt", mark: m})
		s.protections[controlHold{workspace: w, kind: "candidate", mark: m}] = e.Candidate.Snapshot()
		return nil
	case refresh.CandidateSynced:
		files := sortedFiles(e.Candidate.Files())
		for i, f := range files {
			if i > 0 && files[i-1].Path == f.Path {
				return alreadyStored("file " + f.Path)
			}
			if _, err := project.ParseDigest(string(f.SHA256)); err != nil {
				return controlDefect("file " + f.Path + " has no digest")
			}
		}
		return s.step(w, e.Candidate.Mark(), refresh.StageCommitted, func(row *refresh.Row) { row.Stage, row.Files = refresh.StageDurable, files })
	case refresh.CandidateValidated:
		checks := slices.Clone(e.Candidate.Checks())
		return s.step(w, e.Candidate.Mark(), refresh.StageDurable, func(row *refresh.Row) { row.Stage, row.Checks = refresh.StageValidated, checks })
	case refresh.CandidateOrphaned:
		return s.orphaned(w, e.Candidate, e.Checks)
	case refresh.Activated:
		return s.activated(w, e)
	case refresh.GenerationRetired:
		s.endLease(controlLease{w, e.Generation, e.Owner})
		return nil
	case refresh.RunRequeued:
		r := s.run(w, e.Run)
		if r == nil || r.Status != refresh.Running {
			return runEnded(e.Run)
		}
		r.Status, r.Owner = refresh.Queued, ""
		if e.Stopped {
			r.Stops++
		}
		return nil
	case refresh.RunEnded:
		r := s.run(w, e.Run)
		if r == nil || r.Status.Final() {
			return runEnded(e.Run)
		}
		if !e.Status.Final() {
			return controlDefect("run " + string(e.Run) + " cannot end as " + string(e.Status))
		}
		r.Status, r.EndedAt, r.Failure = e.Status, stored(e.At), e.Failure
		return nil
	}
	return fail.New(fail.Internal, "unknown_event", "the control plane does not know the event %s (%T)", event.EventName(), event)
}

func (s *controlState) deployed(w serving.Workspace, d refresh.Deployment) error {
	if d.Number != s.deployment(w).Number+1 {
		return fail.New(fail.Conflict, "deployment_out_of_turn", "deployment %d of workspace %q does not follow the newest one", d.Number, w)
	}
	if !s.releases[controlRelease{w, d.Release}] {
		return controlDefect("release " + d.Release.Short() + " was not accepted")
	}
	d.At = stored(d.At)
	s.deployments[w] = append(slices.Clip(s.deployments[w]), d)
	return nil
}

func (s *controlState) requested(w serving.Workspace, r refresh.Run) error {
	if r.ID == "" || r.Workspace != w || r.Status != refresh.Queued {
		return controlDefect("run " + string(r.ID) + " cannot be requested as it is")
	}
	for _, old := range s.runs {
		if old.ID == r.ID || old.Workspace == w && r.IdempotencyKey != "" && old.IdempotencyKey == r.IdempotencyKey {
			return alreadyStored("run " + string(r.ID) + " or its idempotency key")
		}
	}
	s.runs = append(s.runs, refresh.Run{ID: r.ID, Workspace: w, IdempotencyKey: r.IdempotencyKey, Status: refresh.Queued,
		RequestedAt: stored(r.RequestedAt), RequestedBy: r.RequestedBy})
	return nil
}

func (s *controlState) began(w serving.Workspace, e refresh.AttemptBegan) error {
	m := e.Candidate.Mark()
	r := s.run(w, m.Run)
	switch {
	case m.Workspace != w:
		return controlDefect(m.String() + " belongs to another workspace")
	case m.Fence <= s.highest():
		return fail.New(fail.Fenced, "fenced", "fence %d is not the newest: the node is at fence %d", m.Fence, s.highest())
	case r == nil || r.Status != refresh.Queued || r.Attempts != m.Attempt-1:
		return fail.New(fail.Conflict, "run_not_queued", "%s cannot begin: its run is not queued for it", m)
	case e.Owner == "" || !s.releases[controlRelease{w, m.Release}]:
		return controlDefect(m.String() + " needs an owner and an accepted release")
	}
	if _, err := project.ParseDigest(string(m.Plan)); err != nil {
		return controlDefect(m.String() + " needs a plan")
	}
	s.fences[w] = m.Fence
	r.Status, r.Owner, r.Attempts, r.Deployment = refresh.Running, e.Owner, m.Attempt, s.deployment(w).Number
	r.ClaimRevision++
	if r.StartedAt.IsZero() {
		r.StartedAt = stored(e.At)
	}
	s.attempts[m.Fence] = refresh.Row{Stage: refresh.StageBegun, Mark: m}
	s.protections[controlHold{workspace: w, kind: "attempt", mark: m}] = 0
	return nil
}

func (s *controlState) acquired(w serving.Workspace, e refresh.SourcesAcquired) error {
	m := e.Candidate.Mark()
	if err := s.step(w, m, refresh.StageBegun, func(*refresh.Row) {}); err != nil {
		return err
	}
	files := slices.Clone(s.sources[m.Fence])
	for _, f := range e.Files {
		if slices.ContainsFunc(files, func(o refresh.SourceFile) bool { return o.Source == f.Source && o.Name == f.Name }) {
			return alreadyStored("file " + f.Name + " of source " + f.Source)
		}
		if _, err := project.ParseDigest(string(f.SHA256)); err != nil || f.Source == "" || f.Name == "" || f.Size < 0 {
			return controlDefect("a source's file has a source, a name, a size and a digest")
		}
		files = append(files, f)
	}
	for source, n := range e.Rows {
		if _, stored := s.rows[m.Fence][source]; stored {
			return alreadyStored("rows of source " + source)
		}
		if source == "" || n < 0 {
			return controlDefect("a source has a name and a number of rows")
		}
	}
	s.sources[m.Fence] = files
	if s.rows[m.Fence] == nil {
		s.rows[m.Fence] = maps.Clone(e.Rows)
	} else {
		s.rows[m.Fence] = maps.Clone(s.rows[m.Fence])
		maps.Copy(s.rows[m.Fence], e.Rows)
	}
	return nil
}

// step moves an attempt on from a stage, unless a newer fence was issued for its workspace.
func (s *controlState) step(w serving.Workspace, m refresh.Mark, from refresh.Stage, change func(*refresh.Row)) error {
	row := s.attempts[m.Fence]
	if s.fences[w] != m.Fence {
		return fail.New(fail.Fenced, "fenced", "%s was overtaken: workspace %q is at fence %d", m, w, s.fences[w])
	}
	if row.Mark != m || row.Stage != from {
		return fail.New(fail.Conflict, "candidate_moved", "%s is not stored as %s", m, from)
	}
	change(&row)
	s.attempts[m.Fence] = row
	return nil
}

// orphaned gives an attempt up. No fence is asked: giving up is always allowed, also after a newer attempt began.
func (s *controlState) orphaned(w serving.Workspace, o refresh.Orphan, checks []refresh.CheckResult) error {
	m := o.Mark()
	row := s.attempts[m.Fence]
	if row.Mark != m || m.Workspace != w || row.Stage == refresh.StageActivated || row.Stage == refresh.StageOrphan {
		return fail.New(fail.Conflict, "candidate_moved", "%s is not stored as a live candidate", m)
	}
	if o.Reason() == "" {
		return controlDefect(m.String() + " is given up without a reason")
	}
	row.Stage, row.Snapshot, row.Reason = refresh.StageOrphan, o.Snapshot(), o.Reason()
	row.Checks = append(row.Checks, checks...)
	s.attempts[m.Fence] = row
	delete(s.protections, controlHold{workspace: w, kind: "attempt", mark: m})
	delete(s.protections, controlHold{workspace: w, kind: "candidate", mark: m})
	return nil
}

func (s *controlState) activated(w serving.Workspace, e refresh.Activated) error {
	m, p := e.Candidate.Mark(), e.Pointer
	if err := s.step(w, m, refresh.StageValidated, func(row *refresh.Row) { row.Stage = refresh.StageActivated }); err != nil {
		return err
	}
	if old := s.pointers[w]; old.Generation != e.Previous.Generation || old.Snapshot != e.Previous.Snapshot {
		return fail.New(fail.Conflict, "pointer_moved", "workspace %q no longer serves generation %d at snapshot %d", w, e.Previous.Generation, e.Previous.Snapshot)
	}
	for _, physical := range p.Tables {
		if _, recorded := s.tables[controlTable{w, physical}]; !recorded {
			return controlDefect("table " + physical + " was never recorded")
		}
	}
	if e.Previous.Active() && e.Owner == "" {
		return controlDefect("a lease has an owner")
	}
	r := s.run(w, m.Run)
	if r == nil || r.Status != refresh.Running {
		return runEnded(m.Run)
	}
	p.BuiltAt, p.ActivatedAt, p.Tables = stored(p.BuiltAt), stored(p.ActivatedAt), maps.Clone(p.Tables)
	if len(p.Tables) == 0 {
		p.Tables = nil
	}
	s.pointers[w] = p
	r.Generation, r.Snapshot = p.Generation, p.Snapshot
	delete(s.protections, controlHold{workspace: w, kind: "candidate", mark: m})
	s.protections[controlHold{workspace: w, kind: "active"}] = p.Snapshot
	// What was active stays protected, now by the lease of the process whose requests may still read it.
	if e.Previous.Active() {
		l := controlLease{w, e.Previous.Generation, e.Owner}
		s.leases[l] = true
		s.protections[controlHold{workspace: w, kind: "leased", lease: l}] = e.Previous.Snapshot
	}
	return nil
}

func alreadyStored(what string) error {
	return fail.New(fail.Conflict, "already_stored", "%s is stored already", what)
}

func runEnded(r refresh.RunID) error {
	return fail.New(fail.Conflict, "run_ended", "run %s does not exist, has ended, or is not running", r)
}
