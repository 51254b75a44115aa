package project

func (d *decoder) model(name string, f File) {
	m := Model{Name: name, At: Position{File: f.Path}, Layer: Mart}
	head, statement, ok := d.sql(f)
	if !ok {
		return
	}
	m.Statement = statement
	h := d.mapping(head, "a model", []string{"description", "layer", "materialize", "mode", "input", "key", "deleted_when", "partition_by", "columns", "checks"}, "order_by")
	m.Description = d.optionalText(h, "description")
	if v, ok := h.get("layer"); ok {
		m.Layer = Layer(d.choice(v, "layer", []string{string(Raw), string(Staging), string(Mart)}))
	}
	if v, ok := h.get("materialize"); ok {
		d.choice(v, "materialize", []string{"table"}, "view", "ephemeral")
	}
	m.Filling = d.filling(h)
	if v, ok := h.get("columns"); ok {
		m.Casts = d.columns(v, parseCast, nil)
	}
	if v, ok := h.get("checks"); ok {
		m.Checks = d.checks(v)
	}
	d.project.Models = append(d.project.Models, m)
}
