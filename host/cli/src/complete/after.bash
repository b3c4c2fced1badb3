
# Behind `run --` stands another command, which completes itself. What bash takes apart, as at
# `@` and `:`, is put together again, and of what is offered only the rest is given to it. Words
# are asked about as they are meant, without quotes; names that need some get them from bash.
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
    local COMP_CWORD=$(( ${#whole[@]} - 1 )) meant before=
    local -a COMP_WORDS=()
    word=${whole[COMP_CWORD]}
    if [[ $word == *"$typed" ]]; then
        _snapback_meant "${word%"$typed"}"
        before=$meant
    fi
    for word in "${whole[@]}"; do
        _snapback_meant "$word"
        COMP_WORDS+=("$meant")
    done
    _clap_complete_snapback "$1" "$meant" "$3"
    COMPREPLY=("${COMPREPLY[@]#"$before"}")
    local odd=$'*[][ \t\n!"#$&\'()*;<>?\\\\^`{|}~]*'
    for at in "${!COMPREPLY[@]}"; do
        word=${COMPREPLY[at]}
        [[ $word == $odd ]] || continue
        compopt -o filenames 2> /dev/null
        # Of a directory that is there bash says itself that it is one.
        [[ $word != */ || ! -d $word ]] || COMPREPLY[at]=${word%/}
    done
}

# Sets `meant` to what a word that is being typed means, as far as that is plain: without the
# quotes, of which the last may be open. Nothing in it is executed.
_snapback_meant() {
    local rest=$1 sign quote=
    meant=
    while [[ -n $rest ]]; do
        sign=${rest:0:1}
        rest=${rest:1}
        if [[ $sign == "$quote" ]]; then
            quote=
        elif [[ -z $quote && $sign == [\'\"] ]]; then
            quote=$sign
        elif [[ $sign == \\ && $quote != \' && -n $rest ]]; then
            meant+=${rest:0:1}
            rest=${rest:1}
        else
            meant+=$sign
        fi
    done
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
