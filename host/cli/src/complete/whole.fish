# Behind `run --` stands another command, which completes itself.
function __snapback_complete
    set --local words (commandline --current-process --tokenize --cut-at-cursor)
    set --local current (commandline --current-token --cut-at-cursor)
    set --local at (contains --index -- -- $words)
    if test -n "$at"; and contains -- run $words[1..$at]
        set --local wrapped
        if test $at -lt (count $words)
            set wrapped (string escape -- $words[(math $at + 1)..-1])
        end
        complete --do-complete (string join -- " " $wrapped "$current")
    else
        SNAPBACK_COMPLETE=fish snapback -- $words "$current"
    end
end

complete --keep-order --exclusive --command snapback --arguments "(__snapback_complete)"
