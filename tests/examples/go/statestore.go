// SPDX-License-Identifier: Apache-2.0

// Package lease contains a small client of the state store for tests. Copy it, or use your own client.
package lease

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/eclipse/paho.golang/paho"
)

const service = "statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8"

const patience = 30 * time.Second

// Notification reports that a key was set, was deleted, or has expired.
type Notification struct{ Key, Event string }

// StateStore is a client. Several goroutines can use it at once.
type StateStore struct {
	Notifications chan Notification

	id, replies, notified string
	client                *paho.Client
	mutex                 sync.Mutex
	counter               int
	pending               map[string]chan []byte
}

// Connect connects a client to mqtt://HOST:PORT.
func Connect(where string) (*StateStore, error) {
	address, err := url.Parse(where)
	if err != nil {
		return nil, err
	}
	conn, err := net.Dial("tcp", address.Host)
	if err != nil {
		return nil, err
	}

	id := "test-" + hex.EncodeToString(random())
	store := &StateStore{
		Notifications: make(chan Notification, 100),
		id:            id,
		replies:       "clients/" + id + "/services/statestore/_any_/command/invoke/response",
		notified:      fmt.Sprintf("clients/%s/%X/command/notify/", service, id),
		pending:       map[string]chan []byte{},
	}
	store.client = paho.NewClient(paho.ClientConfig{Conn: conn, Router: paho.NewSingleHandlerRouter(store.receive)})

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := store.client.Connect(ctx, &paho.Connect{ClientID: id, CleanStart: true, KeepAlive: 30}); err != nil {
		return nil, err
	}
	_, err = store.client.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{
		{Topic: store.replies, QoS: 1},
		{Topic: store.notified + "+", QoS: 1},
	}})
	return store, err
}

// Close disconnects the client.
func (store *StateStore) Close() error {
	return store.client.Disconnect(&paho.Disconnect{})
}

func (store *StateStore) receive(message *paho.Publish) {
	if message.Topic == store.replies {
		store.mutex.Lock()
		reply := store.pending[string(message.Properties.CorrelationData)]
		delete(store.pending, string(message.Properties.CorrelationData))
		store.mutex.Unlock()
		if reply != nil {
			reply <- message.Payload
		}
		return
	}
	key, _ := hex.DecodeString(strings.TrimPrefix(message.Topic, store.notified))
	event := "SET"
	if bytes.Equal(message.Payload, encode([]string{"NOTIFY", "DELETE"})) {
		event = "DELETE"
	}
	store.Notifications <- Notification{string(key), event}
}

// Control sends a control request to a double that was started with --control. The words are those of
// `statestorectl test`. A wait that times out is an error.
func (store *StateStore) Control(words ...string) error {
	reply, err := store.ask("control/invoke", words...)
	if err == nil && string(reply) == "0" {
		err = errors.New("no such request has arrived")
	}
	return err
}

// Set sets a key.
func (store *StateStore) Set(key, value string) error {
	_, err := store.ask("command/invoke", "SET", key, value)
	return err
}

// Get returns the value of a key, or nil if the key does not exist.
func (store *StateStore) Get(key string) ([]byte, error) {
	return store.ask("command/invoke", "GET", key)
}

// TakeLease tries to take the lease and reports whether the owner has it.
func (store *StateStore) TakeLease(key, owner string, duration time.Duration) (bool, error) {
	reply, err := store.ask("command/invoke", "SET", key, owner, "NX", "PX", strconv.FormatInt(duration.Milliseconds(), 10))
	return string(reply) == "OK", err
}

// Watch registers for notifications of the key. They arrive in Notifications.
func (store *StateStore) Watch(key string) error {
	_, err := store.ask("command/invoke", "KEYNOTIFY", key)
	return err
}

func (store *StateStore) ask(topic string, words ...string) ([]byte, error) {
	correlation, reply := random(), make(chan []byte, 1)
	store.mutex.Lock()
	store.counter++
	timestamp := fmt.Sprintf("%d:%d:%s", time.Now().UnixMilli(), store.counter, store.id)
	store.pending[string(correlation)] = reply
	store.mutex.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := store.client.Publish(ctx, &paho.Publish{
		Topic:   service + "/" + topic,
		QoS:     1,
		Payload: encode(words),
		Properties: &paho.PublishProperties{
			ResponseTopic:   store.replies,
			CorrelationData: correlation,
			User:            paho.UserProperties{{Key: "__ts", Value: timestamp}, {Key: "__srcId", Value: store.id}},
		},
	})
	if err != nil {
		return nil, err
	}
	select {
	case payload := <-reply:
		return decode(payload)
	case <-ctx.Done():
		return nil, fmt.Errorf("%s gets no reply", words[0])
	}
}

func random() []byte {
	bytes := make([]byte, 16)
	if _, err := rand.Read(bytes); err != nil {
		panic(err)
	}
	return bytes
}

func encode(words []string) []byte {
	var payload bytes.Buffer
	fmt.Fprintf(&payload, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(&payload, "$%d\r\n%s\r\n", len(word), word)
	}
	return payload.Bytes()
}

// decode returns the bytes of a string, nil for an absent value, the digits of a number, or an error.
func decode(payload []byte) ([]byte, error) {
	line, rest, _ := bytes.Cut(payload, []byte("\r\n"))
	switch {
	case bytes.HasPrefix(line, []byte("-")):
		return nil, errors.New(string(line[1:]))
	case string(line) == "$-1":
		return nil, nil
	case bytes.HasPrefix(line, []byte("$")):
		return bytes.TrimSuffix(rest, []byte("\r\n")), nil
	}
	return line[1:], nil
}
