//go:build race

package stat_test

const underRace = true
