package mem

import (
	"context"

	"leapview/domain/fail"
	"leapview/domain/project"
)

// Bundles keeps project bundles on a Disk, as artifacts/DIGEST.tar.
type Bundles struct {
	Disk *Disk
}

// Put stores the bundle under its digest.
func (b Bundles) Put(ctx context.Context, bundle []byte) (project.Digest, error) {
	if err := ended(ctx); err != nil {
		return "", err
	}
	if len(bundle) > project.MaxArchiveBytes {
		return "", project.ArchiveTooLarge()
	}
	id := project.DigestOf(bundle)
	b.Disk.mu.Lock()
	defer b.Disk.mu.Unlock()
	b.Disk.write(bundlePath(id), bundle, true)
	return id, nil
}

// Get gives the bundle's bytes, proved against the digest.
func (b Bundles) Get(ctx context.Context, id project.Digest) ([]byte, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	if _, err := project.ParseDigest(string(id)); err != nil {
		return nil, err
	}
	content, ok := b.Disk.Read(bundlePath(id))
	if !ok {
		return nil, fail.New(fail.Corrupt, "bundle_missing", "project bundle %s is not among the artifacts", id.Short())
	}
	if project.DigestOf(content) != id {
		return nil, fail.New(fail.Corrupt, "bundle_corrupt", "project bundle %s does not have the digest that it is named by", id.Short())
	}
	return content, nil
}

func bundlePath(id project.Digest) string { return "artifacts/" + string(id) + ".tar" }
