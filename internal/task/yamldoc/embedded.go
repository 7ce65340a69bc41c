package yamldoc

import (
	"embed"
	"sync"

	"go.yaml.in/yaml/v4"
)

// Embedded returns a function that reads a data file of the program on its first call. It panics if
// the file is not valid, because then the program was built from broken data.
func Embedded[T any](files embed.FS, name string) func() T {
	return sync.OnceValue(func() (v T) {
		b, err := files.ReadFile(name)
		if err == nil {
			err = yaml.Load(b, &v, yaml.WithKnownFields())
		}
		if err != nil {
			panic("yamldoc: embedded file " + name + ": " + err.Error())
		}
		return v
	})
}
