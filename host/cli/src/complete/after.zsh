
# Behind `run --` stands another command, which completes itself.
function _snapback() {
    local at=${words[(ie)--]}
    if (( at < CURRENT && ${words[(ie)run]} < at )); then
        shift $at words
        (( CURRENT -= at ))
        _normal
    else
        _clap_dynamic_completer_snapback "$@"
    fi
}

compdef _snapback snapback
