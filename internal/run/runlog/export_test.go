package runlog

import "os"

// Times that tests wait for.
const (
	CloseWait = closeWait
	Spared    = spared
)

// A TestFile is a file of a log.
type TestFile = file

// Queue limits the queue to some bytes.
func (o *Options) Queue(bytes int) { o.queue = bytes }

// Wrap calls wrap for each file that the log creates.
func (o *Options) Wrap(wrap func(name string, f TestFile) (TestFile, error)) {
	o.open = func(root *os.Root, name string) (file, error) {
		f, err := create(root, name)
		if err != nil {
			return nil, err
		}
		return wrap(name, f)
	}
}
