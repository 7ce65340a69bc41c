//go:build race

package workflow_test

const underRace = true
