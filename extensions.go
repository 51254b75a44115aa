// Package leapview holds what must lie beside go.mod to be embedded: the digests of the extensions that the binary accepts.
package leapview

import _ "embed"

// ExtensionsLock is extensions.lock: comment lines, then name, engine version, platform and SHA-256 a line.
//
//go:embed extensions.lock
var ExtensionsLock string

// SamplePlanes is real data to try a project with: the planes of the flights example.
//
//go:embed examples/flights/data/planes.csv
var SamplePlanes []byte
