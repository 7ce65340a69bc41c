package runlog

import "os"

// Limits that tests reach and timeouts that they wait for.
const (
	QueueBytes = queueBytes
	ErrorWait  = errorWait
	CloseWait  = closeWait
	Spared     = spared
)

// A TestFile is a file of a log.
type TestFile = file

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
