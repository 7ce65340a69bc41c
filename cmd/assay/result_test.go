package main

import (
	"testing"
	"time"

	"github.com/assay-eval/assay/internal/run/session"
)

func TestSpeedNamesBottleneck(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		speed session.ModelSpeed
		want  string
	}{
		{"idle", session.ModelSpeed{Model: "m", Used: 0.1}, "m: 10 % of its lanes' time used"},
		{
			"full",
			session.ModelSpeed{Model: "m", Used: 0.95, Bottleneck: "concurrency limit of builtin"},
			"m: 95 % of its lanes' time used; bottleneck: concurrency limit of builtin",
		},
		{
			"waited",
			session.ModelSpeed{
				Model: "m", Used: 0.5, Bottleneck: "rpm limit of gw/K1/m", Waited: 80 * time.Second,
			},
			"m: 50 % of its lanes' time used; bottleneck: rpm limit of gw/K1/m (waited 1m20s)",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := speedText(tc.speed); got != tc.want {
				t.Errorf("speedText() = %q, want %q", got, tc.want)
			}
		})
	}
}
