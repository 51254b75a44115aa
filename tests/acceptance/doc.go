// Package acceptance proves the lines of the storage contract on the real engine and a real lake, one test a line. Each test has a
// bug planted against it in tests/planted.
package acceptance
