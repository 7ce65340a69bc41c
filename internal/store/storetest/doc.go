// Package storetest simulates a disk below SQLite that loses power, fills up, and fails to sync.
// It is for tests, and works on Unix.
package storetest
