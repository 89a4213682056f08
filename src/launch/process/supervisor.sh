# shellcheck shell=sh
# Keeps a command, and ends all its processes when its own input ends. Arguments: the mark that the processes bear
# in their environment, seconds of silence or 0, a working folder or nothing; then the command.
# - The watcher is in the background and the command in the foreground: a POSIX shell makes background commands
#   ignore SIGINT, for good.
# - The watcher ignores the signals that may go to the whole group. The shell itself catches them, so that it lives
#   to tell how the command ended, and a caught signal is back at its default in the command.
# - Descriptor 4 is the command's standard error: the shell's own words ("Terminated") are not wanted.
# - A signal waits for the command to be there (5 s at most): "env" sets the mark just before it becomes it.
# - Killing is repeated: a process may start another just before it is killed.
# - A program may write its title over its environment, as nginx does. The signal then goes to the one other child
#   of the shell, once that child is no longer "sh" or "env".
mark=$1 silence=$2 folder=$3
shift 3
marked() { grep -lsxzF -e "$mark" /proc/[0-9]*/environ; }
tell() { for found in $(marked); do found=${found#/proc/}; kill -s "$1" "${found%/environ}"; done; }
sweep() {
  round=0
  while [ -n "$(marked)" ] && [ $round -lt 50 ]; do tell KILL; round=$((round + 1)); sleep 0.1; done
}
untitled() {
  read -r self rest </proc/self/stat
  for stat in /proc/[0-9]*/stat; do
    read -r line <"$stat" || continue
    pid=${line%% *} parent=${line##*) ? } name=${line#*\(}
    case ${name%)*} in sh | dash | bash | env) continue ;; esac
    [ "${parent%% *}" != $$ ] || [ "$pid" = "$self" ] || echo "$pid"
  done
}
deliver() {
  round=0
  while [ -z "$(marked)$(untitled)" ] && [ $round -lt 50 ]; do round=$((round + 1)); sleep 0.1; done
  if [ -n "$(marked)" ]; then tell "$1"; else for child in $(untitled); do kill -s "$1" "$child"; done; fi
}
exec 3<&0 4>&2 </dev/null 2>/dev/null
patience=
# shellcheck disable=SC3045 # asks whether this shell's read can time out
if [ "$silence" != 0 ] && (echo | read -r -t 1 word); then patience="-t $silence"; fi
(
  trap "" TERM INT HUP QUIT PIPE
  # shellcheck disable=SC2229,SC2086 # two words, or none
  while read -r $patience word; do
    case $word in "") ;; *) deliver "$word" ;; esac
  done <&3
  sweep
  kill -s KILL 0
) >/dev/null 4>&- &
watcher=$!
trap : TERM INT HUP QUIT
if [ -n "$folder" ]; then cd "$folder" 2>&4 || { kill -s KILL $watcher; exit 126; }; fi
env "$mark" "$@" 2>&4 3<&- 4>&-
status=$?
sweep
kill -s KILL $watcher
exit $status
