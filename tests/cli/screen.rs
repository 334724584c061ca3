//! The tool on a terminal that script(1) makes, of 80 columns, as nobody says otherwise.

use crate::program::{heeding_signals, program};
use crate::tool::{Done, Place, Tool};

/// What a shell does there with the tool, which is `$X`, while somebody types `input`.
pub(crate) fn on_terminal(place: &Place, script: &str, input: &str) -> Done {
    terminal(place, script).input(input.as_bytes()).done()
}

pub(crate) fn terminal(place: &Place, script: &str) -> Tool {
    let mut tool = place.tool("");
    let mut command = heeding_signals("script");
    command.args(["-q", "-e", "-f", "-c", script, "/dev/null"]);
    command.envs(
        tool.command
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    command.env("X", program()).env_remove("NO_COLOR");
    command.current_dir(place.dir());
    tool.command = command;
    tool
}
