// Package e2e runs the built binary as its users do: commands, signals, HTTP on loopback, the example's real data.
package e2e
