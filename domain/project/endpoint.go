package project

import (
	"fmt"
	"slices"
)

// Endpoint is a named, parameterised question over the models.
type Endpoint struct {
	Name        string
	Description string
	At          Position
	Statement   Statement
	Params      []Param
	// Limit is the most rows an answer may hold; always at least 1.
	Limit   int
	OrderBy OrderBy
	Columns Picking
	// Examples are calls that the endpoint accepts.
	Examples []Example
}

// OrderBy is how an endpoint's callers may sort its answers. The zero value leaves the order to the statement.
type OrderBy struct {
	// Allow lists the columns that a caller may sort by, each in both directions.
	Allow []Column
	// Default sorts answers whose caller asks for no order; its columns are among the allowed ones.
	Default []Order
	// Ties sorts rows that all keys before leave equal; empty leaves such rows in any order.
	Ties []Order
}

// Unplaced is the declaration without its places, to be compared with another.
func (o OrderBy) Unplaced() OrderBy {
	o.Allow, o.Default, o.Ties = slices.Clone(o.Allow), slices.Clone(o.Default), slices.Clone(o.Ties)
	for i := range o.Allow {
		o.Allow[i].At = Position{}
	}
	for _, keys := range [][]Order{o.Default, o.Ties} {
		for i := range keys {
			keys[i].At = Position{}
		}
	}
	return o
}

// Order is one sort key. NULL sorts last in both directions.
type Order struct {
	Column     string
	Descending bool
	At         Position
}

// String is the key as callers write it.
func (o Order) String() string {
	if o.Descending {
		return "-" + o.Column
	}
	return o.Column
}

// Picking is what is declared of an endpoint's output columns.
type Picking struct {
	// Allow lists the columns of which a caller may choose some, in an order of its own; empty allows no choice.
	Allow []Column
	// Described are columns with descriptions for people.
	Described []Column
}

// Example is a call that shows how the endpoint is asked.
type Example struct {
	Name        string
	Description string
	At          Position
	Call        Call
}

// Describe gives the columns their declared descriptions, and reports what is declared of columns that are not there.
func (e Endpoint) Describe(columns []Column) ([]Column, Problems) {
	names := make([]string, len(columns))
	described := make([]Column, len(columns))
	at := map[string]int{}
	for i, c := range columns {
		names[i], described[i], at[c.Name] = c.Name, c, i
	}
	var problems Problems
	known := func(name string, place Position) bool {
		if _, ok := at[name]; ok {
			return true
		}
		problems = append(problems, Problem{At: place, Message: fmt.Sprintf("endpoint %q has no column %s", e.Name, show(name)), Fix: hint(name, names)})
		return false
	}
	for _, c := range e.Columns.Described {
		if known(c.Name, c.At) {
			described[at[c.Name]].Description = c.Description
		}
	}
	for _, c := range e.Columns.Allow {
		known(c.Name, c.At)
	}
	for _, c := range e.OrderBy.Allow {
		known(c.Name, c.At)
	}
	for _, o := range e.OrderBy.Ties {
		known(o.Column, o.At)
	}
	return described, problems
}

// ParamType is the type of an endpoint's parameter, or of each item of one that is a list.
type ParamType string

// The parameter types of this version.
const (
	ParamString    ParamType = "string"
	ParamInteger   ParamType = "integer"
	ParamDecimal   ParamType = "decimal"
	ParamBoolean   ParamType = "boolean"
	ParamDate      ParamType = "date"
	ParamTimestamp ParamType = "timestamp"
)

// Param declares one parameter.
type Param struct {
	Name        string
	Description string
	At          Position
	Type        ParamType
	// List tells that the value is a list. What follows about values holds for each of its items.
	List bool
	// MaxItems is the most items of a list; always at least 1 for one.
	MaxItems int
	// Required parameters have no default. An optional parameter without one is NULL when it is not given.
	Required bool
	Default  *Value
	// Enum lists the only texts accepted; empty accepts any.
	Enum []string
	// Min and Max bound integers, decimals, dates and timestamps, inclusive, in the parameter's own canonical text.
	Min, Max *string
	// MinLength and MaxLength bound strings, in characters, inclusive.
	MinLength, MaxLength *int
	// Pattern is what the whole of a string has to match; nil matches any.
	Pattern *Pattern
}

// Value is a parameter's value, checked: canonical text, a list of canonical texts, or NULL.
type Value struct {
	Text string
	// Items are a list's; nil for what is no list.
	Items []string
	Null  bool
}
