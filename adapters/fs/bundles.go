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
	if len(bundle) > project.MaxArchiveBytes {
		return "", project.ArchiveTooLarge()
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
	content, err := io.ReadAll(io.LimitReader(f, project.MaxArchiveBytes+1))
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
