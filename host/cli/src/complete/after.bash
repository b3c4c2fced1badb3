
# Behind `run --` stands another command, which completes itself. What bash takes apart, as at
# `@` and `:`, is put together again, and of what is offered only the rest is given to it.
_snapback() {
    local line=${COMP_LINE:0:COMP_POINT} typed=$2 ran= at gap word
    local -a whole=()
    for (( at = 0; at <= COMP_CWORD; at++ )); do
        word=${COMP_WORDS[at]}
        if [[ $at -lt $COMP_CWORD && $word == -- && -n $ran ]]; then
            _snapback_wrapped $(( at + 1 )) "$typed"
            return
        fi
        [[ $word != run ]] || ran=yes
        gap=${line%%[![:space:]]*}
        line=${line#"$gap"}
        (( at < COMP_CWORD )) || word=$line
        line=${line#"$word"}
        if [[ $at -gt 0 && -z $gap && -n $word ]]; then
            whole[${#whole[@]} - 1]+=$word
        else
            whole+=("$word")
        fi
    done
    local COMP_CWORD=$(( ${#whole[@]} - 1 ))
    local -a COMP_WORDS=("${whole[@]}")
    word=${whole[COMP_CWORD]}
    _clap_complete_snapback "$1" "$word" "$3"
    word=${word%"$typed"}
    COMPREPLY=("${COMPREPLY[@]#"$word"}")
}

# As bash-completion does it for the command that begins at this word; without it, names of
# commands, then of files.
_snapback_wrapped() {
    compopt +o nospace +o nosort 2> /dev/null
    COMPREPLY=()
    if declare -F _comp_command_offset > /dev/null; then
        _comp_command_offset "$1"
    elif declare -F _command_offset > /dev/null; then
        _command_offset "$1"
    elif [[ $COMP_CWORD -eq $1 && $2 != */* ]]; then
        local IFS=$'\n'
        COMPREPLY=($(compgen -c -- "$2"))
    else
        compopt -o default 2> /dev/null
    fi
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -o nospace -o bashdefault -o nosort -F _snapback snapback
else
    complete -o nospace -o bashdefault -F _snapback snapback
fi
