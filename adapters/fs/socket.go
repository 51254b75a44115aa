package fs

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"

	"leapview/domain/fail"
)

// maxSocketPath is how many bytes of path the kernel takes for a Unix socket, its closing NUL not counted.
func maxSocketPath() int {
	if runtime.GOOS == "linux" {
		return 107
	}
	return 103
}

// socketAddress gives an address of the socket that the kernel takes, whatever the length of its path. The address is good
// until done is called.
func socketAddress(l Layout) (address string, done func(), err error) {
	if len(l.Socket) <= maxSocketPath() {
		return l.Socket, func() {}, nil
	}
	if runtime.GOOS != "linux" {
		return "", nil, fail.New(fail.Limit, "socket_path", "the control socket's path %s has %d bytes (limit of this system = %d)", l.Socket, len(l.Socket), maxSocketPath()).
			WithFix("name a data directory with a shorter path")
	}
	// A descriptor of the directory names it in few bytes.
	d, err := os.Open(l.Root)
	if err != nil {
		return "", nil, err
	}
	address = fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), filepath.Base(l.Socket))
	return address, func() { _ = d.Close() }, nil
}

// Listen opens the control socket, 0600, also when its path is longer than the kernel takes. Holding the lock proves that a
// socket found there is a dead process's, so it is removed. Close the listener before the lock is released.
func (k *Lock) Listen() (net.Listener, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.layout
	if k.file == nil {
		return nil, fail.New(fail.Internal, "not_locked", "the control socket %s needs the lock, which was released", l.Socket)
	}
	if info, err := os.Lstat(l.Socket); err == nil && info.Mode()&os.ModeSocket == 0 {
		return nil, fail.New(fail.Invalid, "not_a_socket", "%s is in the way of the control socket", l.Socket).WithFix("move it away")
	}
	if err := os.Remove(l.Socket); err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return nil, storeError(err, "remove the dead socket %s", l.Socket)
	}
	address, done, err := socketAddress(l)
	if err != nil {
		return nil, unlessClassified(err, storeError, "name the control socket %s", l.Socket)
	}
	defer done()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
	if err != nil {
		return nil, storeError(err, "listen on the control socket %s", l.Socket)
	}
	// The address may not outlive this call, so the socket is unlinked by its own path.
	listener.SetUnlinkOnClose(false)
	s := &socket{UnixListener: listener, path: l.Socket}
	// Until here the mode was what the umask left, behind a directory that only we can enter.
	if err := os.Chmod(l.Socket, 0o600); err != nil {
		_ = s.Close()
		return nil, storeError(err, "close the control socket %s to other users", l.Socket)
	}
	return s, nil
}

// socket is a listener that removes its own file.
type socket struct {
	*net.UnixListener
	path string

	once sync.Once
	err  error
}

// Close ends the listener and removes the socket. Twice is once, with the same result.
func (s *socket) Close() error {
	s.once.Do(func() {
		s.err = s.UnixListener.Close()
		if err := os.Remove(s.path); err != nil && !errors.Is(err, iofs.ErrNotExist) && s.err == nil {
			s.err = storeError(err, "remove the control socket %s", s.path)
		}
	})
	return s.err
}

// Dial connects to the control socket of the node that runs on the data directory; unavailable when none does.
func Dial(ctx context.Context, l Layout) (net.Conn, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	address, done, err := socketAddress(l)
	if err == nil {
		defer done()
		var conn net.Conn
		if conn, err = new(net.Dialer).DialContext(ctx, "unix", address); err == nil {
			return conn, nil
		}
	}
	if errors.Is(err, iofs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fail.New(fail.Unavailable, "node_not_running", "no node is running on the data directory %s", l.Root).
			WithFix("start one (leapview serve), or name the directory of the one that runs").Because(err)
	}
	if stopped := alive(ctx); stopped != nil {
		return nil, stopped
	}
	// Whoever dials named the directory.
	return nil, unlessClassified(err, namedError, "connect to the control socket %s", l.Socket)
}
