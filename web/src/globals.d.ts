declare module "@engine/ackclock_wasm.wasm?url" {
  const url: string;
  export default url;
}
