package project

import (
	"fmt"
	"slices"
	"strings"
)

// MaxKeyColumns bounds the columns of a key, and of partitions.
const MaxKeyColumns = 16

// filling decodes how a model's table is filled.
func (d *decoder) filling(h fields) Filling {
	var f Filling
	if v, ok := h.get("mode"); ok {
		f.Mode = Mode(d.choice(v, "mode", []string{string(ModeFull), string(ModeAppend), string(ModeUpsert), string(ModeReplace)}))
		if f.Mode == "" {
			// What goes with it is not known.
			return f
		}
	}
	mode := f.Mode
	if mode == "" || mode == ModeFull {
		f.Mode, mode = "", ModeFull
	}
	for _, k := range fillingKeys {
		if v, ok := h.get(k.key); ok && !slices.Contains(k.modes, mode) {
			names := make([]string, len(k.modes))
			for i, m := range k.modes {
				names[i] = string(m)
			}
			d.report(v.At, fmt.Sprintf("%s does not go with mode %s", k.key, mode), "remove it, or write mode: "+strings.Join(names, " or "))
		}
	}
	if v, ok := h.get("input"); ok && f.Incremental() {
		f.Input, _ = d.scalarText(v, "input")
		f.InputAt = v.At
	}
	named := map[Mode]string{ModeUpsert: "key", ModeReplace: "partition_by"}[mode]
	if named == "" {
		return f
	}
	v, ok := h.get(named)
	if !ok {
		d.report(h.at, fmt.Sprintf("mode %s needs the key %q", mode, named), "name the columns, such as "+named+": [id]")
		return f
	}
	f.Key, _ = d.checkedColumns(v, named)
	f.KeyAt = v.At
	if len(f.Key) > MaxKeyColumns {
		d.report(v.At, fmt.Sprintf("%s has %d columns (limit key_columns = %d)", named, len(f.Key), MaxKeyColumns), "name fewer")
	}
	if v, ok := h.get("deleted_when"); ok && mode == ModeUpsert {
		f.DeletedWhen = d.fragment(v, "deleted_when")
	}
	return f
}
