//go:build planted

package planted

import "slices"

// proofBegins is how the function that proves a bound plan begins, and unproved takes its place: it proves nothing.
const (
	proofBegins = "func Prove(ctx context.Context, c Querier, sql string, schema string, tables []string, version int64) error {\n"
	unproved    = "func Prove(ctx context.Context, c Querier, sql string, schema string, tables []string, version int64) error { return nil }\n\n" +
		"func ProveForReal(ctx context.Context, c Querier, sql string, schema string, tables []string, version int64) error {\n"
)

// unpinned makes queries read the newest snapshot, unproved.
var unpinned = []edit{
	{"adapters/duckdb/query/read.go", "Table: table, Version: int64(scope.Snapshot)}", "Table: table}"},
	{"adapters/duckdb/gate/plan.go", proofBegins, unproved},
}

// bugs are the planted bugs.
var bugs = []bug{
	{
		name: "a second engine is constructed for each build",
		edits: []edit{{"adapters/duckdb/lake/lake.go",
			"	c, err := l.engine.Conn(ctx)\n	if err != nil {\n		l.writer <- struct{}{}",
			"	if second, err := duckdb.NewConnector(\"\", nil); err == nil {\n		engine.CountConstruction()\n		defer second.Close()\n	}\n	c, err := l.engine.Conn(ctx)\n	if err != nil {\n		l.writer <- struct{}{}"},
			{"adapters/duckdb/lake/lake.go", "	\"leapview/adapters/duckdb/engine\"\n", "	\"github.com/duckdb/duckdb-go/v2\"\n	\"leapview/adapters/duckdb/engine\"\n"},
			{"adapters/duckdb/engine/engine.go", "func Constructions() int64 { return constructions.Load() }", "func Constructions() int64 { return constructions.Load() }\n\nfunc CountConstruction() { constructions.Add(1) }"},
		},
		pkg: "./tests/acceptance/", test: "TestOneInstance", says: "the engine was constructed",
	},
	{
		name: "a reading begins a new transaction for each answer and reads the newest snapshot",
		edits: append(slices.Clone(unpinned),
			edit{"adapters/duckdb/query/read.go", "	a, err := r.answer(ctx, q, args, limits)\n", "	_ = r.conn.Exec(ctx, \"ROLLBACK\")\n	_ = r.conn.Exec(ctx, \"BEGIN TRANSACTION READ ONLY\")\n	a, err := r.answer(ctx, q, args, limits)\n"}),
		pkg: "./tests/acceptance/", test: "TestHeldRead", says: "in the same transaction after the commit",
	},
	{
		name:  "queries read the newest snapshot",
		edits: unpinned,
		pkg:   "./tests/acceptance/", test: "TestTwoGenerations", says: "want [[",
	},
	{
		name:  "a relation stays unpinned and the bound plan is not proved",
		edits: unpinned,
		pkg:   "./tests/acceptance/", test: "TestNoUnqualifiedRelation", says: "want the workspace's tables at snapshot",
	},
	{
		name: "retiring a generation closes the engine",
		edits: []edit{
			{"app/worker.go", "	for _, g := range w.gens.TakeRetired() {\n", "	for _, g := range w.gens.TakeRetired() {\n		if c, ok := w.refresher.releases.reader.(interface{ CloseEngine() error }); ok {\n			_ = c.CloseEngine()\n		}\n"},
			{"adapters/duckdb/query/read.go", "// Open is ports.Reader's.\n", "// CloseEngine is planted.\nfunc (r *Reader) CloseEngine() error { return r.engine.Close() }\n\n// Open is ports.Reader's.\n"},
		},
		pkg: "./tests/acceptance/", test: "TestRetirement", says: "the engine is closed",
	},
	{
		name:  "a generation is published before it is activated",
		edits: []edit{{"app/refresh.go", "	// 6. The pointer moves in one transaction", "	r.gens.Publish(next)\n	// 6. The pointer moves in one transaction"}},
		pkg:   "./tests/acceptance/", test: "TestFailedActivation", says: "right after the failure",
	},
	{
		name:  "data files are hashed and not synced",
		edits: []edit{{"adapters/fs/datafiles.go", "	if err := d.sync(f); err != nil {\n		return refresh.File{}, syncError(err, name)\n	}\n", ""}},
		pkg:   "./tests/acceptance/", test: "TestSyncedBeforeActivation", says: "was not synced before the activation",
	},
	{
		name:  "a source is held against nothing",
		edits: []edit{{"app/refresh.go", "s.AcceptRows(rows[s.Name], active[s.Name])", "s.AcceptRows(rows[s.Name], 0)"}},
		pkg:   "./tests/integration/", test: "TestSourcesWithinBounds", says: "want source_shrank",
	},
	{
		name:  "a refresh goes on from the newest rows",
		edits: []edit{{"adapters/duckdb/lake/work.go", "		if sameFiles(old, now[t.Model.Table]) {\n", "		if sameFiles(old, now[t.Model.Table]) || t.Action != plan.Keep {\n"}},
		pkg:   "./tests/contract/", test: "TestLakeDuckDB", says: "what_an_attempt_left_that_was_given_up",
	},
	{
		name:  "a table that nothing is done to is not reverted",
		edits: []edit{{"adapters/duckdb/lake/work.go", "			if err := b.revert(ctx, t); err != nil {\n				return err\n			}\n			continue\n", "			continue\n"}},
		pkg:   "./tests/contract/", test: "TestLakeDuckDB", says: "what_an_attempt_left_that_was_given_up",
	},
	{
		name: "the base is read within the transaction that changes it",
		edits: []edit{{"adapters/duckdb/lake/work.go", "	return b.conn.Exec(ctx, \"INSERT INTO \"+t.table+\" FROM \"+engine.Identifier(t.base))", "	return b.conn.Exec(ctx, fmt.Sprintf(\"INSERT INTO %s FROM %s AT (VERSION => %d)\", t.table, t.table, t.at))"},
			{"adapters/duckdb/lake/work.go", "		t.base = \"base \"", "		t.at = int64(mark.Base)\n		t.base = \"base \""},
			{"adapters/duckdb/lake/work.go", "	incoming, fold string\n", "	incoming, fold string\n	at             int64\n"}},
		pkg: "./tests/contract/", test: "TestLakeDuckDB", says: "what_an_attempt_left_that_was_given_up",
	},
	{
		name:  "what the newest attempt read counts as read, whether it was activated or not",
		edits: []edit{{"adapters/sqlite/load.go", "JOIN source_files f ON f.fence = a.fence WHERE p.workspace = ?", "JOIN source_files f ON f.fence = (SELECT max(fence) FROM source_files) WHERE p.workspace = ?"}},
		pkg:   "./tests/integration/", test: "TestMonths", says: "answers",
	},
	{
		name:  "a file of another encoding is taken for a plain one",
		edits: []edit{{"adapters/duckdb/lake/csv.go", "d.Encoding == \"\" && ", ""}},
		pkg:   "./adapters/duckdb/lake/", test: "TestDialects", says: "Ã©",
	},
	{
		name:  "a revoked key is let in until the next start",
		edits: []edit{{"app/keyring.go", "		k.show(after)\n", "		if len(after) != len(k.ring.Load().keys) {\n			k.show(after)\n		}\n"}},
		pkg:   "./app/", test: "TestKeyring", says: "after its revocation: key:",
	},
	{
		name:  "a route has no action",
		edits: []edit{{"adapters/http/server.go", "	return e\n}\n", "	e.GET(\"/v1/everything\", r.listWorkspaces)\n	return e\n}\n"}},
		pkg:   "./adapters/http/", test: "TestMatrix", says: "/v1/everything has no action",
	},
	{
		name:  "a viewer may refresh",
		edits: []edit{{"domain/access/access.go", "	Refresh:    {least: Operator,", "	Refresh:    {least: Viewer,"}},
		pkg:   "./adapters/http/", test: "TestMatrix", says: "202, want 403",
	},
	{
		name:  "a workspace is looked up before it is known whether it may be seen",
		edits: []edit{{"adapters/http/access.go", "	return access.Allowed(who, a, w)\n", "	if _, _, missing := r.asker.Endpoints(w); w != \"\" && missing != nil {\n		return missing\n	}\n	return access.Allowed(who, a, w)\n"}},
		pkg:   "./adapters/http/", test: "TestForbiddenIsLikeUnknown", says: "forbidden 500",
	},
	{
		name:  "a refused change is not told to the audit",
		edits: []edit{{"adapters/http/around.go", "		r.denied(c, action, err)\n", ""}},
		pkg:   "./adapters/http/", test: "TestRefusedChangesAreTold", says: "told:",
	},
}
