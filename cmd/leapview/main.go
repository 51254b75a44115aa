// Command leapview is the whole product in one binary. It hands its arguments to the command line and exits with its code, and
// owns nothing but the signals: the first one cancels what is under way, the second one kills.
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(cli.Run(ctx, os.Args[1:], bootstrap.NewHost(), os.Stdin, os.Stdout, os.Stderr))
}
