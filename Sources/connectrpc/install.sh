#!/usr/bin/env bash
# Installs the program $1 under the folder $2, with completions for bash, zsh and fish, and its manual page.
set -euo pipefail
program="$1" prefix="$2"

install -D -m 755 "$program" "$prefix/bin/connectrpc"
completions() {
  mkdir -p "$(dirname "$prefix/share/$2")"
  "$program" --generate-completion-script "$1" >"$prefix/share/$2"
}
completions bash bash-completion/completions/connectrpc
completions zsh zsh/site-functions/_connectrpc
completions fish fish/vendor_completions.d/connectrpc.fish
mkdir -p "$prefix/share/man/man1"
"$program" manual >"$prefix/share/man/man1/connectrpc.1"
echo "connectrpc is in $prefix/bin"
