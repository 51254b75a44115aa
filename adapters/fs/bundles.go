package fs

import (
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"sync"

	"leapview/domain/fail"
	"leapview/domain/project"
)

// MaxBundleBytes bounds one project bundle, and so the memory that reading one takes: the files' bytes, and room for the archive
// around a thousand of them.
const MaxBundleBytes = project.MaxBundleBytes + 4<<20

// Bundles keeps project bundles as artifacts/DIGEST.tar.
type Bundles struct {
	dir  string
	sync func(*os.File) error

	// mu lets one writer at a time into the folder.
	mu sync.Mutex
}

// NewBundles keeps bundles in the layout's artifacts folder.
func NewBundles(l Layout) *Bundles { return &Bundles{dir: l.Artifacts, sync: (*os.File).Sync} }

// Put stores the bundle durably under its digest. A bundle that is there already is written again: after a crash its file may be
// there without being durable, and this way a damaged one heals.
func (b *Bundles) Put(ctx context.Context, bundle []byte) (project.Digest, error) {
	if err := alive(ctx); err != nil {
		return "", err
	}
	if len(bundle) > MaxBundleBytes {
		return "", tooLarge("the project bundle", int64(len(bundle)))
	}
	id := project.DigestOf(bundle)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := writeDurably(b.path(id), bundle, b.sync); err != nil {
		return "", err
	}
	return id, nil
}

// Get gives the bundle's bytes, proved against the digest. Whoever asks knows that it was stored, so one that is not there is a loss.
func (b *Bundles) Get(ctx context.Context, id project.Digest) ([]byte, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	if _, err := project.ParseDigest(string(id)); err != nil {
		return nil, err
	}
	f, err := os.Open(b.path(id))
	if errors.Is(err, iofs.ErrNotExist) {
		return nil, fail.New(fail.Corrupt, "bundle_missing", "project bundle %s is not among the artifacts in %s", id.Short(), b.dir).
			WithFix("deploy the project again, from the same files, or restore the file from a backup")
	}
	if err != nil {
		return nil, storeError(err, "open the project bundle %s", b.path(id))
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, MaxBundleBytes+1))
	if err != nil {
		return nil, storeError(err, "read the project bundle %s", b.path(id))
	}
	if project.DigestOf(content) != id {
		return nil, fail.New(fail.Corrupt, "bundle_corrupt", "%s does not have the digest that it is named by", b.path(id)).
			WithFix("deploy the project again, from the same files, or restore the file from a backup")
	}
	return content, nil
}

func (b *Bundles) path(id project.Digest) string { return filepath.Join(b.dir, string(id)+".tar") }

func tooLarge(what string, size int64) error {
	return fail.New(fail.Limit, "bundle_too_large", "%s has %d bytes (limit bundle_bytes = %d)", what, size, MaxBundleBytes).
		WithFix("a project holds declarations and SQL; keep data files out of it")
}
