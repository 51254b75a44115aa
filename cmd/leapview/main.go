// Command leapview is the whole product in one binary. It hands its arguments to the command line and exits with its code, and
// owns nothing but what belongs to a process: the signals, of which the first cancels what is under way and the second kills, and the
// mask that keeps every file it makes, the engine's own too, from other users.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"leapview/adapters/cli"
	"leapview/bootstrap"
)

func main() {
	syscall.Umask(0o077)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(cli.Run(ctx, os.Args[1:], bootstrap.NewHost(), os.Stdin, os.Stdout, os.Stderr))
}
