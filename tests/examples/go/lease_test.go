// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

var statestoreURL = os.Getenv("STATESTORE_URL")

// TestMain uses the double that the environment names, or starts one that stops with the test run.
func TestMain(m *testing.M) {
	if statestoreURL != "" {
		os.Exit(m.Run())
	}
	double := exec.Command("statestored", "--dev", "--control", "--port", "0", "--exit-with-parent")
	double.Stderr = os.Stderr
	stdin, _ := double.StdinPipe()
	stdout, _ := double.StdoutPipe()
	if err := double.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		fmt.Fprintln(os.Stderr, "statestored did not start:", err)
		os.Exit(1)
	}
	statestoreURL = strings.TrimSpace(line)

	code := m.Run()
	stdin.Close()
	double.Wait()
	os.Exit(code)
}

// newStore returns a client of an empty state store.
func newStore(t *testing.T) *StateStore {
	t.Helper()
	store, err := Connect(statestoreURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	check(t, store.Control("reset"))
	return store
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func checkLease(t *testing.T, store *StateStore, owner string, expected bool) {
	t.Helper()
	taken, err := store.TakeLease("lease", owner, time.Hour)
	check(t, err)
	if taken != expected {
		t.Fatalf("%s took the lease: %t, expected %t", owner, taken, expected)
	}
}

func checkNotification(t *testing.T, store *StateStore, expected Notification) {
	t.Helper()
	select {
	case notification := <-store.Notifications:
		if notification != expected {
			t.Fatalf("unexpected notification: %v", notification)
		}
	case <-time.After(patience):
		t.Fatal("no notification")
	}
}

func TestKeyIsSetAndRead(t *testing.T) {
	store := newStore(t)
	check(t, store.Set("greeting", "hello"))
	value, err := store.Get("greeting")
	check(t, err)
	if string(value) != "hello" {
		t.Fatalf("read %q", value)
	}
}

func TestEachTestBeginsWithAnEmptyStore(t *testing.T) {
	store := newStore(t)
	value, err := store.Get("greeting")
	check(t, err)
	if value != nil {
		t.Fatalf("read %q", value)
	}
}

func TestLeaseIsFreeAgainAfterItsTime(t *testing.T) {
	store := newStore(t)
	checkLease(t, store, "me", true)
	checkLease(t, store, "you", false)

	check(t, store.Control("clock", "advance", "1h"))
	checkLease(t, store, "you", true)
}

func TestWatcherIsNotifiedWhenALeaseEnds(t *testing.T) {
	store := newStore(t)
	checkLease(t, store, "me", true)
	check(t, store.Watch("lease"))

	check(t, store.Control("clock", "advance", "1h"))
	checkNotification(t, store, Notification{"lease", "DELETE"})
}

func TestSetOfTheValueDeleteIsNotifiedAsSet(t *testing.T) {
	store := newStore(t)
	check(t, store.Watch("state"))
	check(t, store.Set("state", "DELETE"))
	checkNotification(t, store, Notification{"state", "SET"})
}

func TestWaitForThatTimesOutIsAnError(t *testing.T) {
	store := newStore(t)
	check(t, store.Set("greeting", "hello"))
	check(t, store.Control("wait-for", "verb", "SET"))
	if store.Control("wait-for", "verb", "DEL", "timeout", "1ms") == nil {
		t.Fatal("unexpected: no test deletes a key")
	}
}
