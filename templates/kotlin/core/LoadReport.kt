package bundler.loader

/**
 * What the loader did for one model: nothing is left out in silence.
 *
 * @property variant the variant that runs
 * @property providers the execution providers that it asks for, the preferred one first
 * @property rejected for each earlier variant, by name, why it does not run
 * @property nodes how many nodes of the graph each provider was assigned; empty where that was not counted
 * @property remarks what else the user should know, a sentence each
 */
public class LoadReport internal constructor(
    public val variant: String,
    public val providers: List<String>,
    public val rejected: Map<String, String>,
    public val nodes: Map<String, Int>,
    public val remarks: List<String>,
) {
    /** Whether this is not the preferred variant. */
    public val fellBack: Boolean get() = rejected.isNotEmpty()

    override fun toString(): String {
        val lines = mutableListOf("variant $variant runs on ${providers.joinToString(", ")}")
        nodes.entries.mapTo(lines) { "${it.value} nodes are assigned to ${it.key}" }
        lines.addAll(remarks)
        rejected.entries.mapTo(lines) { "variant ${it.key} does not: ${it.value}" }
        return lines.joinToString("\n")
    }
}
