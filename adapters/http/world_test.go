package http

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"leapview/adapters/mem"
	"leapview/app"
	"leapview/domain/access"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/domain/serving"
)

// world is a whole node over the twins, whose worker runs only when a test says so.
type world struct {
	t         *testing.T
	control   *mem.Control
	gens      *app.Generations
	deployer  *app.Deployer
	refresher *app.Refresher
	worker    *app.Worker
	ready     *app.Readiness
	health    *health
	keyring   *app.Keyring
	clock     *mem.Clock
	server    *Server
	log       *bytes.Buffer
	// runs are those that activated each workspace.
	runs map[serving.Workspace]string
	// spare is a key that a test may revoke.
	spare access.KeyID
}

// health is a engine's health that a test decides.
type health struct{ fatal func() error }

func (h *health) Fatal() error {
	if h.fatal == nil {
		return nil
	}
	return h.fatal()
}

const flightsCSV = "day,carrier,flights\n2013-01-01,UA,3\n2013-01-01,AA,2\n2013-01-02,UA,9007199254740993\n"

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, control: mem.NewControl(), gens: app.NewGenerations(), health: &health{}, clock: &mem.Clock{}, log: &bytes.Buffer{}, runs: map[serving.Workspace]string{}}
	clock, ids, disk := w.clock, &mem.Identity{}, &mem.Disk{}
	const lineage, boot = "lake", app.Boot("boot")
	if err := w.control.RecordLake(t.Context(), lakeRecord(lineage)); err != nil {
		t.Fatal(err)
	}
	sources := &mem.Sources{Files: map[string][]byte{"flights.csv": []byte(flightsCSV)}}
	store := mem.NewStore(lineage, mem.StoreOptions{Clock: clock, Disk: disk, Content: sources.Content, Readings: 4})
	log := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	releases := app.NewReleases(mem.Bundles{Disk: disk}, mem.Documents{}, mem.Compiler{}, store)
	w.deployer = app.NewDeployer(w.control, mem.Bundles{Disk: disk}, releases, clock, log)
	w.refresher = app.NewRefresher(w.control, mem.Watermark{Disk: disk}, sources, store, mem.DataFiles{Disk: disk}, store, releases, w.gens, clock, ids, boot, log)
	w.worker = app.NewWorker(w.control, w.refresher, w.gens, clock, boot, log)
	w.ready = app.NewReadiness(w.gens, w.health)
	w.ready.Set(nil)
	var err error
	if w.keyring, err = app.OpenKeyring(t.Context(), w.control, clock, ids, log); err != nil {
		t.Fatal(err)
	}
	asker := app.NewAsker(w.gens, store, app.NewSlots(2, 2), app.AskLimits{Bytes: 1 << 20, Calls: 3, Time: 1e9})
	w.server = New(asker, w.deployer, w.refresher, w.worker, app.NewStatus(w.control, w.gens), w.keyring, w.ready,
		Options{MaxBody: 4096, Version: "1.2.3"}, log)
	return w
}

// bundle packs the example project, with a mistake in it when the model's text says so.
func (w *world) bundle(model string) []byte {
	w.t.Helper()
	b, err := project.Pack([]project.File{
		{Path: "leapview.yaml", Content: []byte(`{"name": "flights"}`)},
		{Path: "sources/raw.yaml", Content: []byte(`{"location": "flights.csv", "format": "csv", "columns": {"day": "DATE", "carrier": "VARCHAR", "flights": "BIGINT"}}`)},
		{Path: "models/daily.sql", Content: []byte(model)},
		{Path: "endpoints/by_carrier.sql", Content: []byte("/*---\n{\"description\": \"Flights of a carrier\", \"limit\": 2, \"params\": {\"carrier\": {\"type\": \"string\", \"default\": \"UA\", \"enum\": [\"UA\", \"AA\"]}}}\n---*/\n" +
			"SELECT day, flights FROM daily WHERE carrier = $carrier ORDER BY day")},
		{Path: "endpoints/all.sql", Content: []byte("/*---\n{\"limit\": 2, \"params\": {\"least\": {\"type\": \"integer\", \"required\": true}}}\n---*/\n" +
			"SELECT day, carrier, flights FROM daily WHERE flights >= $least ORDER BY day, carrier")},
		{Path: "endpoints/search.sql", Content: []byte("/*---\n{\"description\": \"Flights of some carriers\", \"limit\": 10," +
			" \"params\": {\"carriers\": {\"type\": \"string\", \"list\": true, \"max_items\": 3, \"required\": true, \"pattern\": \"[A-Z]{2}\"}," +
			" \"least\": {\"type\": \"integer\", \"default\": 0, \"min\": 0, \"description\": \"Fewest flights\"}}," +
			" \"order_by\": {\"allow\": [\"day\", \"flights\"], \"default\": [\"-flights\"], \"ties\": [\"day\"]}," +
			" \"columns\": {\"allow\": [\"carrier\", \"flights\"], \"descriptions\": {\"carrier\": \"IATA code\"}}," +
			" \"examples\": [{\"name\": \"both\", \"description\": \"Both carriers\", \"params\": {\"carriers\": [\"UA\", \"AA\"]}, \"order_by\": [\"day\"], \"columns\": [\"carrier\"], \"limit\": 1}]}\n---*/\n" +
			"SELECT day, carrier, flights FROM daily WHERE list_contains($carriers, carrier) AND flights >= $least")},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

const goodModel = "SELECT day, carrier, flights FROM raw"

// work works the run, as the worker would.
func (w *world) work(run refresh.RunID) { w.workIn("flights", run) }

func (w *world) workIn(name serving.Workspace, run refresh.RunID) {
	w.t.Helper()
	if _, err := w.worker.WorkOne(context.WithoutCancel(w.t.Context()), name, run, func(plan.Progress) {}); err != nil {
		w.t.Log(err)
	}
}

// activate deploys and refreshes the example project.
func (w *world) activate() { w.activateBundle("flights", w.bundle(goodModel)) }

func (w *world) activateBundle(name serving.Workspace, bundle []byte) {
	w.t.Helper()
	if _, err := w.deployer.Deploy(w.t.Context(), bundle, "/data", access.Local.Caller("")); err != nil {
		w.t.Fatal(err)
	}
	run, err := w.refresher.Request(w.t.Context(), name, "", access.Local.Caller(""))
	if err != nil {
		w.t.Fatal(err)
	}
	w.workIn(name, run.ID)
	w.runs[name] = string(run.ID)
}
