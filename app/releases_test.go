package app

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"leapview/adapters/mem"
	"leapview/domain/fail"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/ports"
)

// countingCompiler counts how often a project is compiled.
type countingCompiler struct {
	ports.Compiler
	count int
}

func (c *countingCompiler) Compile(ctx context.Context, id project.Digest, p project.Project) (plan.Release, error) {
	c.count++
	return c.Compiler.Compile(ctx, id, p)
}

// Proves that a release is compiled once while it is among those used last, that one that does not compile is not kept, and that a bundle
// that is gone is noticed although its release is in memory.
func TestReleasesAreCompiledOnce(t *testing.T) {
	ctx := context.Background()
	compiler := &countingCompiler{Compiler: mem.Compiler{}}
	disk := &mem.Disk{}
	bundles := mem.Bundles{Disk: disk}
	r := NewReleases(bundles, mem.Documents{}, compiler, nil)
	pack := func(name, endpoint string) ([]byte, project.Digest) {
		b, err := project.Pack([]project.File{
			{Path: "leapview.yaml", Content: []byte(fmt.Sprintf("{\"name\": %q}", name))},
			{Path: "sources/s.yaml", Content: []byte(`{"connector": "file", "location": "s.csv", "format": "csv", "columns": {"a": "BIGINT"}}`)},
			{Path: "models/m.sql", Content: []byte("SELECT a FROM s\n")},
			{Path: "endpoints/e.sql", Content: []byte(endpoint)},
		})
		if err != nil {
			t.Fatal(err)
		}
		id, err := bundles.Put(ctx, b)
		if err != nil {
			t.Fatal(err)
		}
		return b, id
	}
	b, id := pack("w", "SELECT a FROM m\n")
	first, err := r.compile(ctx, id, b)
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.load(ctx, id)
	if err != nil || !reflect.DeepEqual(again, first) || compiler.count != 1 {
		t.Errorf("compiled %d times: %v", compiler.count, err)
	}
	for i := range keptReleases {
		b, id := pack(fmt.Sprintf("w%d", i), "SELECT a FROM m\n")
		if _, err := r.compile(ctx, id, b); err != nil {
			t.Fatal(err)
		}
	}
	before := compiler.count
	if _, err := r.load(ctx, id); err != nil || compiler.count != before+1 {
		t.Errorf("one of %d others is kept: %v", keptReleases, err)
	}
	bad, badID := pack("bad", "SELECT b FROM m\n")
	for range 2 {
		if _, err := r.compile(ctx, badID, bad); fail.KindOf(err) != fail.Invalid {
			t.Errorf("got %v", err)
		}
	}
	disk.Remove("artifacts/" + string(id) + ".tar")
	if _, err := r.load(ctx, id); fail.CodeOf(err) != "bundle_missing" {
		t.Errorf("got %v", err)
	}
}
