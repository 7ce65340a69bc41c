package child

var Sweep = sweep
