# Prints the words that zsh offers behind a beginning of a command, as a person would see them at TAB.
# FOLDER has _stepsim, the output of `stepsim help completion zsh`.
#
#   zsh -f zsh_completions.zsh FOLDER 'stepsim run --mo'
zmodload zsh/zpty
zpty shell zsh -f -i
() {
  zpty -w shell "source $1"
  local line
  repeat 20; do
    zpty -r shell line || break
    [[ $line == *ready* ]] && return
  done
  print -u2 'the shell does not start'
  exit 1
} =(<<<"
PROMPT=
stty -echo
fpath=(${(q)1} \$fpath)
autoload -Uz compinit
compinit -u -D
bindkey '^I' complete-word
zstyle ':completion:*' insert-tab false
mark() { print -r -- '<mark>' }
compprefuncs=(mark)
comppostfuncs=(mark exit)
# What is offered goes through the builtin compadd; this one prints what matches.
compadd() {
  if [[ \${@[1,(i)(-|--)]} != *-(O|A|D)\ * ]]; then
    local -a offered
    builtin compadd -O offered \"\$@\"
    print -rl -- \$offered
  fi
  builtin compadd \"\$@\"
}
print ready")
zpty -w -n shell "$2"$'\t'
integer marks=0
while zpty -r shell line; do
  line=${line//$'\r'/}
  if [[ $line == *'<mark>'* ]]; then
    (( ++marks == 2 )) && break
  elif (( marks == 1 )) && [[ -n $line ]]; then
    print -rn -- $line
  fi
done
zpty -d shell
