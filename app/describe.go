package app

import (
	"context"
	"slices"
	"strings"

	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/domain/serving"
	"leapview/ports"
)

// Describer tells what a workspace's endpoints are where nothing is served.
type Describer struct {
	control  ports.Control
	releases *Releases
}

// NewDescriber wires the ports that describing needs.
func NewDescriber(control ports.Control, releases *Releases) *Describer {
	return &Describer{control, releases}
}

// Endpoints compiles the release behind the active snapshot and gives its endpoints, sorted by name. They are those that a node would
// serve; no row is read.
func (d *Describer) Endpoints(ctx context.Context, w serving.Workspace) (Asked, []EndpointDescription, error) {
	s, err := d.control.Load(ctx, refresh.Scope{Workspace: w})
	if err != nil {
		return Asked{}, nil, err
	}
	if !s.Pointer.Active() {
		return Asked{}, nil, nothingActive(w)
	}
	rel, err := d.releases.load(ctx, s.Pointer.Release)
	if err != nil {
		return Asked{}, nil, err
	}
	endpoints := slices.SortedFunc(slices.Values(rel.Endpoints), func(a, b plan.Endpoint) int { return strings.Compare(a.Name, b.Name) })
	list := make([]EndpointDescription, len(endpoints))
	for i, e := range endpoints {
		list[i] = describe(e)
	}
	return Asked{Workspace: w, Lineage: s.Lineage, Pointer: s.Pointer}, list, nil
}

// Described picks one of a workspace's endpoints by its name.
func Described(w serving.Workspace, list []EndpointDescription, name string) (EndpointDescription, error) {
	names := make([]string, len(list))
	for i, e := range list {
		if e.Name == name {
			return e, nil
		}
		names[i] = e.Name
	}
	return EndpointDescription{}, unknownEndpoint(w, name, names)
}

// EndpointDescription says how an endpoint is asked and what it answers, in the form in which both doors show it.
type EndpointDescription struct {
	Name        string              `json:"name"`
	Description string              `json:"description"`
	Params      []ParamDescription  `json:"params"`
	Columns     []ColumnDescription `json:"columns"`
	// Pick lists the columns that a caller may choose from with "columns"; empty when it may not.
	Pick []string `json:"pick"`
	// OrderBy is null when a caller cannot sort.
	OrderBy  *OrderDescription    `json:"order_by"`
	Limit    int                  `json:"limit"`
	Examples []ExampleDescription `json:"examples"`
}

// ParamDescription says what a parameter accepts. Values are in the text that a call may give.
type ParamDescription struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Type        project.ParamType `json:"type"`
	List        bool              `json:"list"`
	MaxItems    int               `json:"max_items,omitempty"`
	Required    bool              `json:"required"`
	// Default is a text, a list of texts, or null.
	Default   any      `json:"default"`
	Enum      []string `json:"enum,omitempty"`
	Min       *string  `json:"min,omitempty"`
	Max       *string  `json:"max,omitempty"`
	MinLength *int     `json:"min_length,omitempty"`
	MaxLength *int     `json:"max_length,omitempty"`
	Pattern   string   `json:"pattern,omitempty"`
}

// ColumnDescription is one column of the answers.
type ColumnDescription struct {
	Name        string       `json:"name"`
	Type        project.Type `json:"type"`
	Description string       `json:"description"`
}

// OrderDescription is how answers can be sorted; a minus in front of a column sorts it descending.
type OrderDescription struct {
	Allow   []string `json:"allow"`
	Default []string `json:"default"`
	Ties    []string `json:"ties"`
}

// ExampleDescription is a call; what is beside its name and description can be sent as it is.
type ExampleDescription struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Params      map[string]any `json:"params"`
	OrderBy     any            `json:"order_by,omitempty"`
	Columns     any            `json:"columns,omitempty"`
	Limit       int            `json:"limit,omitempty"`
}

func describe(e plan.Endpoint) EndpointDescription {
	d := EndpointDescription{Name: e.Name, Description: e.Description, Params: make([]ParamDescription, len(e.Params)), Columns: make([]ColumnDescription, len(e.Columns)),
		Pick: make([]string, len(e.Endpoint.Columns.Allow)), Limit: e.Limit, Examples: make([]ExampleDescription, len(e.Examples))}
	for i, p := range e.Params {
		d.Params[i] = describeParam(p)
	}
	for i, c := range e.Columns {
		d.Columns[i] = ColumnDescription{c.Name, c.Type, c.Description}
	}
	for i, c := range e.Endpoint.Columns.Allow {
		d.Pick[i] = c.Name
	}
	if o := e.OrderBy; len(o.Allow) > 0 {
		d.OrderBy = &OrderDescription{make([]string, len(o.Allow)), keysOf(o.Default), keysOf(o.Ties)}
		for i, c := range o.Allow {
			d.OrderBy.Allow[i] = c.Name
		}
	}
	for i, x := range e.Examples {
		params := make(map[string]any, len(x.Call.Params))
		for name, g := range x.Call.Params {
			params[name] = givenOf(g)
		}
		d.Examples[i] = ExampleDescription{x.Name, x.Description, params, givenOf(x.Call.OrderBy), givenOf(x.Call.Columns), 0}
		if x.Call.Limit.Given() {
			// The call was bound when the endpoint was decoded.
			d.Examples[i].Limit = e.Bind(x.Call, "", &project.CallError{}).Limit
		}
	}
	return d
}

func describeParam(p project.Param) ParamDescription {
	d := ParamDescription{Name: p.Name, Description: p.Description, Type: p.Type, List: p.List, MaxItems: p.MaxItems, Required: p.Required,
		Enum: p.Enum, Min: p.Min, Max: p.Max, MinLength: p.MinLength, MaxLength: p.MaxLength}
	switch {
	case p.Default == nil:
	case p.List:
		d.Default = p.Default.Items
	default:
		d.Default = p.Default.Text
	}
	if p.Pattern != nil {
		d.Pattern = p.Pattern.String()
	}
	return d
}

func keysOf(order []project.Order) []string {
	keys := make([]string, len(order))
	for i, o := range order {
		keys[i] = o.String()
	}
	return keys
}

// givenOf is a value as a call may write it, or nil for none.
func givenOf(g project.Given) any {
	texts := make([]string, len(g.Items))
	for i, item := range g.Items {
		texts[i] = item.Text
	}
	switch {
	case g.List:
		return texts
	case len(texts) == 1:
		return texts[0]
	}
	return nil
}
