package slots_test
import ("testing";"fmt";"time";"github.com/shardd/shardd/slots")
func TestThirty(t *testing.T) {
  for _,c:=range []struct{n,z,r int}{{12,3,2},{12,3,3},{30,5,3},{100,3,2},{100,4,3},{30,0,3},{100,0,1},{1000,0,1},{1000,5,3}} {
    for _,op:=range []string{"add","remove","x2","zone","replace"} {
      ids:=make([]string,c.n+8); w:=make([]uint32,len(ids)); zz:=make([]uint16,len(ids))
      for i:=range ids{ids[i]=fmt.Sprintf("node-%04d",i); if i<c.n {w[i]=1}; if c.z>0{zz[i]=uint16(i%c.z)}}
      zones:=zz; if c.z==0{zones=nil}
      t0:=time.Now()
      prev,rp,err:=slots.Update(nil,ids,w,zones,16384,c.r)
      if err!=nil{t.Fatal(err)}
      tb:=time.Since(t0)
      switch op{
      case "add": w[c.n]=1
      case "remove": w[c.n/2]=0
      case "x2": w[c.n/2]=2
      case "zone": z:=c.z; if z==0{z=1}; for i:=range z{w[c.n+i]=1}
      case "replace": w[c.n/2]=0; w[c.n+ (func()int{ if c.z>0{return ((c.n/2)%c.z - c.n%c.z + c.z)%c.z}; return 0})()]=1
      }
      t0=time.Now()
      _,r,err:=slots.Update(prev,ids,w,zones,16384,c.r)
      if err!=nil{t.Fatal(err)}
      tu:=time.Since(t0)
      t.Logf("N=%d Z=%d R=%d %-8s moves %d/%d prim %d/%d miss %d  %v (build %v prim %d/%d miss %d)",c.n,c.z,c.r,op,r.Moves,r.Bound,r.PrimaryMoves,r.PrimaryBound,r.PrimaryMissing,tu,tb,rp.PrimaryMoves,rp.PrimaryBound,rp.PrimaryMissing)
    }
  }
}
