package child_test

import (
	"strings"
	"testing"

	"github.com/assay-eval/assay/internal/task/child"
)

const (
	nestedGroup = `  + Exception Group Traceback (most recent call last):
  |   File "/tmp/agent.py", line 8, in <module>
  |     asyncio.run(main())
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Exception Group Traceback (most recent call last):
    |   File "/tmp/agent.py", line 6, in main
    |     async with asyncio.TaskGroup() as tg2:
    | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
    +-+---------------- 1 ----------------
      | Traceback (most recent call last):
      |   File "/tmp/agent.py", line 3, in a
      |     async def a(): raise ConnectionRefusedError("no server")
      |                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      | ConnectionRefusedError: no server
      +------------------------------------
`
	groupOfTwo = `Traceback (most recent call last):
  File "/tmp/agent.py", line 8, in <module>
    f()
ValueError: bad

During handling of the above exception, another exception occurred:

  + Exception Group Traceback (most recent call last):
  |   File "/tmp/agent.py", line 10, in <module>
  |     raise ExceptionGroup("unhandled errors in a TaskGroup", [e, OSError("later")])
  | ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/tmp/agent.py", line 4, in f
    |     {}["x"]
    | KeyError: 'x'
    |
    | The above exception was the direct cause of the following exception:
    |
    | Traceback (most recent call last):
    |   File "/tmp/agent.py", line 6, in f
    |     raise HTTPStatusError("401") from e
    | httpx.HTTPStatusError: Client error '401 Unauthorized' for url 'http://x'
    | For more information check: http://y
    +---------------- 2 ----------------
    | OSError: later
    +------------------------------------
`
	nodeImport = `node:internal/modules/esm/resolve:873
  throw new ERR_MODULE_NOT_FOUND(packageName, fileURLToPath(base), null);
        ^

Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'ai' imported from /tmp/agent.mjs
    at packageResolve (node:internal/modules/esm/resolve:873:9)
    at ModuleJob._link (node:internal/modules/esm/module_job:168:49) {
  code: 'ERR_MODULE_NOT_FOUND'
}

Node.js v22.1.0
`
	nodeRequire = `node:internal/modules/cjs/loader:1210
  throw err;
  ^

Error: Cannot find module './nothing.js'
Require stack:
- /tmp/agent.cjs
    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)
    at Object.<anonymous> (/tmp/agent.cjs:1:1)
  requireStack: [ '/tmp/agent.cjs' ]
}

Node.js v20.20.2
`
	nodeCause = `node:internal/deps/undici/undici:14976
      Error.captureStackTrace(err);
            ^

TypeError: fetch failed
    at node:internal/deps/undici/undici:14976:13
    at async file:///tmp/agent.mjs:1:1 {
  [cause]: Error: bad port
      at makeNetworkError (node:internal/deps/undici/undici:9495:35)
}

Node.js v22.1.0
`
)

func TestLastWord(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, text, want string }{
		{"nothing", " \n", ""},
		{"a line", "starting\nno configuration found\n\n", "no configuration found"},
		{"colours", "\x1b[31mred\x1b[0m\n", "red"},
		{
			"import in Python", "warming up\nTraceback (most recent call last):\n" +
				"  File \"/tmp/agent.py\", line 1, in <module>\n    import nothing_here\n" +
				"ModuleNotFoundError: No module named 'nothing_here'\n",
			"ModuleNotFoundError: No module named 'nothing_here'",
		},
		{
			"syntax in Python", "  File \"/tmp/agent.py\", line 1\n    x = = 2\n        ^\n" +
				"SyntaxError: invalid syntax\n", "SyntaxError: invalid syntax",
		},
		{
			"lines after an error in Python", "Traceback (most recent call last):\n" +
				"  File \"/tmp/agent.py\", line 3, in <module>\n    raise ValidationError(text)\n" +
				"pydantic.ValidationError: 1 validation error\nfield\n  missing\n",
			"pydantic.ValidationError: 1 validation error",
		},
		{"nested exception groups", nestedGroup, "ConnectionRefusedError: no server"},
		{
			"the first of a group", groupOfTwo,
			"httpx.HTTPStatusError: Client error '401 Unauthorized' for url 'http://x'",
		},
		{
			"import in Node", nodeImport,
			"Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'ai' imported from /tmp/agent.mjs",
		},
		{"several lines in Node", nodeRequire, "Error: Cannot find module './nothing.js'"},
		{"cause in Node", nodeCause, "TypeError: fetch failed"},
		{"the latest", nodeImport + nestedGroup, "ConnectionRefusedError: no server"},
		{"a long line", strings.Repeat("ü", 999), strings.Repeat("ü", 200) + "…"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := child.LastWord(tc.text); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
