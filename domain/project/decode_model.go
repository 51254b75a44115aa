package project

func (d *decoder) model(name string, f File) {
	m := Model{Name: name, At: Position{File: f.Path}, Layer: Mart}
	head, statement, ok := d.sql(f)
	if !ok {
		return
	}
	m.Statement = statement
	h := d.mapping(head, "a model", []string{"description", "layer", "materialize", "mode", "columns", "checks"}, "key", "partition_by", "order_by")
	m.Description = d.optionalText(h, "description")
	if v, ok := h.get("layer"); ok {
		m.Layer = Layer(d.choice(v, "layer", []string{string(Raw), string(Staging), string(Mart)}))
	}
	if v, ok := h.get("materialize"); ok {
		d.choice(v, "materialize", []string{"table"}, "view", "ephemeral")
	}
	if v, ok := h.get("mode"); ok {
		d.choice(v, "mode", []string{"full"}, "append", "incremental", "merge", "upsert", "snapshot")
	}
	if v, ok := h.get("columns"); ok {
		m.Casts = d.columns(v, parseCast, nil)
	}
	if v, ok := h.get("checks"); ok {
		m.Checks = d.checks(v)
	}
	d.project.Models = append(d.project.Models, m)
}
