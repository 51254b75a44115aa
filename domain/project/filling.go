package project

// Mode says what a refresh does to a model's table when new files of its input come in.
type Mode string

// The modes.
const (
	// ModeFull builds the table anew from everything that the statement reads.
	ModeFull Mode = "full"
	// ModeAppend adds what the statement gives of each new file.
	ModeAppend Mode = "append"
	// ModeUpsert puts what the statement gives of each new file in the place of the rows with the same key.
	ModeUpsert Mode = "upsert"
	// ModeReplace puts what the statement gives of each new file in the place of all rows of the partitions that it gives rows of.
	ModeReplace Mode = "replace_partitions"
)

// Filling is how a model's table is filled. Every mode but full works on one source, file by file: the statement is run for each file by
// itself, with only that file's rows behind the source's name.
type Filling struct {
	// Mode is empty for ModeFull.
	Mode Mode
	// Input is the source whose files fill the table one by one; empty in ModeFull, and where the model reads only one source.
	Input   string
	InputAt Position
	// Key names the columns that identify a row in ModeUpsert, and the partitions in ModeReplace; empty in other modes.
	Key   []string
	KeyAt Position
	// DeletedWhen is SQL over one row of what the statement gives in ModeUpsert: where it is true the key's row goes. Its SQL is empty when
	// no row is deleted.
	DeletedWhen Statement
}

// Incremental tells whether new files are worked into the table that is there.
func (f Filling) Incremental() bool { return f.Mode != "" && f.Mode != ModeFull }

// fillingKeys are the keys of a model's head that say how its table is filled, with the modes that each belongs to.
var fillingKeys = []struct {
	key   string
	modes []Mode
}{
	{"input", []Mode{ModeAppend, ModeUpsert, ModeReplace}},
	{"key", []Mode{ModeUpsert}},
	{"deleted_when", []Mode{ModeUpsert}},
	{"partition_by", []Mode{ModeReplace}},
}
