//go:build race

package episode_test

const underRace = true
