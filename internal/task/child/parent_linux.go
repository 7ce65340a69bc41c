package child

import "syscall"

// dieWithParent lets the kernel kill the program if Assay is killed.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
