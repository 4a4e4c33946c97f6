// Package cli is the command lines of shardd and migrate: flags, output and exit
// codes over the packages that do the work.
//
// # Law
//
//   - Standard output is data, standard error is talk: whatever a program may
//     want to read goes to the former and nothing else does.
//   - One error is printed once, as "shardd: what is wrong and what to do".
//   - The exit code says who has to act; see the Exit constants. A command whose
//     output could not be written has failed.
//   - The first SIGINT or SIGTERM ends a command in order, the second at once.
//
// One file a verb.
package cli
