// Package fs owns the data directory: its layout and its lock, the control socket in it, the bundles, the staged copies of
// source files, the durability of the lake's data files and the fence's watermark. It also reads a project's files for the CLI.
//
// Invariants: directories are 0700 and files 0600; what a method calls durable has been synced, and so has every folder that
// leads to it; a path that someone else wrote (a source location, a data file's name) is opened below its root only, also when
// links are in the way; one process at a time holds the directory.
//
// It deliberately does not know what is inside a file: no SQL, no Parquet, no YAML. It never opens leapview.db or the lake's
// catalog, because closing any descriptor of them in this process would drop the engine's lock on them.
package fs
