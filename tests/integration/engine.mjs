// Loads one model and creates the contexts that are asked for, one after the other; prints the engine's own log.
// node engine.mjs MODULE MODEL '[{"contextSize": 4096}, ...]'
const [, , module, modelPath, contexts] = process.argv;
const {getLlama, LlamaLogLevel} = await import(module);

const say = (text) => process.stdout.write(text.endsWith("\n") ? text : text + "\n");
const llama = await getLlama({
    gpu: false,
    build: "never",
    logLevel: LlamaLogLevel.debug,
    logger: (level, text) => say(text),
});

say("=== model");
const model = await llama.loadModel({modelPath, useMmap: false});
for (const [number, options] of JSON.parse(contexts).entries()) {
    say(`=== context ${number}`);
    try {
        const context = await model.createContext({failedCreationRemedy: false, ...options});
        await context.dispose();
    } catch (error) {
        say(`=== refused ${number}: ${error.message}`);
    }
}
say("=== end");
process.exit(0);
